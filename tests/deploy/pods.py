"""The profile `restricted` of the Pod Security standards, as its page has it: what a pod may not say, and what it must."""

VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret"}
SYSCTLS = {
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
}  # fmt: skip
SELINUX_TYPES = {None, "", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
PROFILES = {"RuntimeDefault", "Localhost"}


def containers(pod):
    """(kind, container) of every container of a pod."""
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in pod.get(kind) or []:
            yield kind, container


def restricted(pod):
    """What the profile does not allow in this pod."""
    yield from _baseline(pod)
    above = pod.get("securityContext") or {}
    for volume in pod.get("volumes") or []:
        for kind in sorted(set(volume) - {"name"} - VOLUMES):
            yield f"volume {volume['name']} is a {kind}"
    if above.get("runAsUser") == 0:
        yield "runs as root"
    for _, container in containers(pod):
        name, own = container["name"], container.get("securityContext") or {}
        if own.get("allowPrivilegeEscalation") is not False:
            yield f"{name}: allowPrivilegeEscalation is not false"
        if own.get("runAsNonRoot", above.get("runAsNonRoot")) is not True:
            yield f"{name}: runAsNonRoot is not true"
        if own.get("runAsUser") == 0:
            yield f"{name}: runs as root"
        capabilities = own.get("capabilities") or {}
        if "ALL" not in (capabilities.get("drop") or []):
            yield f"{name}: does not drop ALL capabilities"
        if set(capabilities.get("add") or []) - {"NET_BIND_SERVICE"}:
            yield f"{name}: adds capabilities"
        profile = own.get("seccompProfile", above.get("seccompProfile")) or {}
        if profile.get("type") not in PROFILES:
            yield f"{name}: has no seccompProfile"


def _baseline(pod):
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(field):
            yield f"{field} is set"
    above = pod.get("securityContext") or {}
    contexts = [("the pod", above)]
    contexts += [(c["name"], c.get("securityContext") or {}) for _, c in containers(pod)]
    for name, own in contexts:
        if (own.get("windowsOptions") or {}).get("hostProcess"):
            yield f"{name}: is a host process"
        selinux = own.get("seLinuxOptions") or {}
        if selinux.get("type") not in SELINUX_TYPES or selinux.get("user") or selinux.get("role"):
            yield f"{name}: sets SELinux options"
        if (own.get("appArmorProfile") or {}).get("type") not in (None, *PROFILES):
            yield f"{name}: has no AppArmor profile"
        if own.get("privileged"):
            yield f"{name}: is privileged"
        if own.get("procMount") not in (None, "Default"):
            yield f"{name}: mounts all of /proc"
    for sysctl in above.get("sysctls") or []:
        if sysctl.get("name") not in SYSCTLS:
            yield f"sets the sysctl {sysctl.get('name')}"
    for _, container in containers(pod):
        name = container["name"]
        for port in container.get("ports") or []:
            if port.get("hostPort"):
                yield f"{name}: takes a port of the host"
        hooks = list((container.get("lifecycle") or {}).values())
        hooks += [container.get(p) or {} for p in ("livenessProbe", "readinessProbe", "startupProbe")]
        for hook in hooks:
            if any((hook.get(kind) or {}).get("host") for kind in ("httpGet", "tcpSocket")):
                yield f"{name}: a probe or hook names a host"
