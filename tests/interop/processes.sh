# Starting and ending processes, for scripts to source. Everything that was started ends with the script.

started=()

# start LOG COMMAND...: runs in the background; its id is $last
start() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 &
    last=$!
    started+=("$last")
}

# stop PID: ends one process, by force after three seconds
stop() {
    local pid=$1
    kill "$pid" 2>/dev/null || return 0
    for _ in $(seq 30); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    return 0
}

stop_all() {
    local pid
    for pid in "${started[@]}"; do stop "$pid"; done
    started=()
}

# free_port: a port of the loopback interface that nobody has
free_port() {
    python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# listens PORT PID LOG: waits until the process accepts connections; tells why when it does not
listens() {
    local port=$1 pid=$2 log=$3
    for _ in $(seq 150); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return 0
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    echo "nothing listens on port $port; the log ends with:" >&2
    tail -n 5 "$log" >&2
    return 1
}
