{{- define "a2a.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "a2a.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "a2a.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "a2a.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "a2a.selector" -}}
app.kubernetes.io/name: {{ include "a2a.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* part-of is what the ServiceMonitor takes the job's name from, which the alerts go by. */}}
{{- define "a2a.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "a2a.selector" . }}
app.kubernetes.io/part-of: a2a-gateway
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "a2a.account" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "a2a.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "a2a.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ printf "%s@%s" .repository .digest }}
{{- else }}{{ printf "%s:%s" .repository (default $.Chart.AppVersion .tag) }}{{ end }}
{{- end }}
{{- end }}

{{/* What the chart sets, with what .Values.settings says laid over it. */}}
{{- define "a2a.settings" -}}
{{- $set := dict "listen" "0.0.0.0:8080" "admin" "0.0.0.0:9090" "log_format" "json" }}
{{- $_ := set $set "drain" (dict "delay" (printf "%ds" (int .Values.drain.delay)) "grace" (printf "%ds" (int .Values.drain.grace))) }}
{{- if .Values.secretName }}
{{- $_ := set $set "admin_token_file" "/run/secrets/a2a-gateway/admin-token" }}
{{- end }}
{{- if .Values.tls.secretName }}
{{- $_ := set $set "tls" (dict "cert_file" "/run/secrets/tls/tls.crt" "key_file" "/run/secrets/tls/tls.key") }}
{{- end }}
{{- if eq .Values.mode "sidecar" }}
{{- $_ := set $set "workers" 1 }}
{{- $_ := set $set "backend" (dict "url" (printf "http://127.0.0.1:%d" (int .Values.agent.port)) "max_connections" 1000 "wait" "2s" "idle" "30s") }}
{{- $_ := set $set "limits" (dict "buffered" "64MiB" "body" "4MiB" "response" "16MiB" "event" "4MiB" "connections" 1000 "followers" 128 "connect" "1s") }}
{{- end }}
{{- toYaml (mustMergeOverwrite $set (deepCopy .Values.settings)) }}
{{- end }}

{{- define "a2a.drain" -}}
exec:
  command: [/usr/local/bin/a2a-gateway, drain, --config, /etc/a2a-gateway/gateway.yaml, --wait, {{ printf "%ds" (add (int .Values.drain.delay) (int .Values.drain.grace) 5) }}]
{{- end }}

{{- define "a2a.container" -}}
name: a2a-gateway
image: {{ include "a2a.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [serve, --config, /etc/a2a-gateway/gateway.yaml]
{{- with .Values.env }}
env: {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - name: http
    containerPort: 8080
  - name: admin
    containerPort: 9090
startupProbe:
  httpGet: {path: /livez, port: 9090}
  periodSeconds: 1
  failureThreshold: 30
readinessProbe:
  httpGet: {path: /readyz, port: 9090}
  periodSeconds: 2
  failureThreshold: 1
livenessProbe:
  httpGet: {path: /livez, port: 9090}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
{{- if and (eq .Values.mode "sidecar") .Values.secretName }}
# SIGTERM comes to a sidecar only when the agent has ended, too late for its streams; this hook runs at once.
lifecycle:
  preStop: {{- include "a2a.drain" . | nindent 4 }}
{{- end }}
resources:
{{- if .Values.resources }}
  {{- toYaml .Values.resources | nindent 2 }}
{{- else if eq .Values.mode "sidecar" }}
  requests: {cpu: 100m, memory: 64Mi}
  limits: {memory: 256Mi}
{{- else }}
  requests: {cpu: "1", memory: 512Mi}
  limits: {memory: 1Gi}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
  seccompProfile: {type: RuntimeDefault}
volumeMounts:
  {{- include "a2a.mounts" . | nindent 2 }}
  {{- with .Values.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Folders, not single files (subPath), or a change would not be seen. */}}
{{- define "a2a.mounts" -}}
- name: a2a-gateway-settings
  mountPath: /etc/a2a-gateway
  readOnly: true
{{- if .Values.secretName }}
- name: a2a-gateway-secrets
  mountPath: /run/secrets/a2a-gateway
  readOnly: true
{{- end }}
{{- if .Values.tls.secretName }}
- name: a2a-gateway-tls
  mountPath: /run/secrets/tls
  readOnly: true
{{- end }}
{{- end }}

{{- define "a2a.agent" -}}
{{- $demo := not .Values.agent.image -}}
name: agent
image: {{ default (include "a2a.image" .) .Values.agent.image }}
imagePullPolicy: {{ .Values.agent.pullPolicy }}
{{- with .Values.agent.command }}
command: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .Values.agent.args }}
args: {{- toYaml .Values.agent.args | nindent 2 }}
{{- else if $demo }}
args: [demo, --agent-only, --listen, "127.0.0.1:{{ int .Values.agent.port }}"]
{{- end }}
{{- with .Values.agent.env }}
env: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.agent.envFrom }}
envFrom: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .Values.agent.startupPath }}
# A probe cannot reach it on loopback; what it says through the gateway tells that it is up.
startupProbe:
  httpGet:
    path: {{ .Values.agent.startupPath }}
    port: 8080
    {{- if .Values.tls.secretName }}
    scheme: HTTPS
    {{- end }}
  periodSeconds: 1
  failureThreshold: 60
{{- end }}
{{- if .Values.agent.preStop }}
lifecycle:
  preStop: {{- toYaml .Values.agent.preStop | nindent 4 }}
{{- else if and $demo .Values.secretName }}
lifecycle:
  preStop: {{- include "a2a.drain" . | nindent 4 }}
{{- else if and (not $demo) (semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version) }}
lifecycle:
  preStop:
    sleep: {seconds: {{ add (int .Values.drain.delay) (int .Values.drain.grace) 5 }}}
{{- end }}
resources: {{- toYaml .Values.agent.resources | nindent 2 }}
securityContext: {{- toYaml .Values.agent.securityContext | nindent 2 }}
{{- $own := and $demo .Values.secretName }}
{{- if or $own .Values.agent.volumeMounts }}
volumeMounts:
  {{- if $own }}
  {{- include "a2a.mounts" . | nindent 2 }}
  {{- end }}
  {{- with .Values.agent.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}
