# The published SDKs as clients, for scripts to source: installing them and running all their scenarios. They need
# processes.sh, $here (this folder), $env (where the SDKs are), $logs (a folder), and $url for `both`.

common='uvicorn==0.54.0 httpx==0.28.1'
pins="py03 a2a-sdk[http-server]==0.3.26 $common
py1 a2a-sdk[http-server]==1.3.0 $common
js03 @a2a-js/sdk@0.3.14
js037 @a2a-js/sdk@0.3.7
js1 @a2a-js/sdk@1.3.0"

install() {
    [ "$(cat "$env/installed" 2>/dev/null)" = "$pins" ] && return 0
    local name packages
    mkdir -p "$env"
    while read -r name packages; do
        echo "installing $name: $packages" >&2
        case $name in
        # unquoted: a list of packages
        py*)
            python3 -m venv --clear "$env/$name" || return 1
            "$env/$name/bin/pip" install -q --disable-pip-version-check $packages || return 1
            ;;
        js*)
            rm -rf "${env:?}/$name"
            mkdir "$env/$name"
            # a package of its own, or npm would look for one further up
            echo '{"private":true}' >"$env/$name/package.json"
            npm install --prefix "$env/$name" --silent --no-audit --no-fund --save-exact $packages </dev/null || return 1
            ;;
        esac
    done <<<"$pins"
    echo "$pins" >"$env/installed"
}

# client NAME TRANSPORT URL BACKEND_BINDING: all scenarios of one client
client() {
    local name=$1 transport=$2 url=$3 label="$1 $2 (agent by $4)"
    local out="$logs/$name-$transport-$4.out" errors="$logs/$name-$transport-$4.err"
    case $name in
    adk) PYTHONPATH=$here "$env/py1/bin/python" -B -W ignore "$here/adk/client.py" "$url" "$transport" "$label" ;;
    py*) "$env/$name/bin/python" -B -W ignore "$here/$name.py" "$url" "$transport" "$label" ;;
    js037) node "$here/js03.mjs" "$url" "$transport" "$label" "$env/$name" ;;
    js*) node "$here/$name.mjs" "$url" "$transport" "$label" "$env/$name" ;;
    esac >"$out" 2>"$errors"
    # a program that broke off has not said "end"
    if [ "$(tail -n 1 "$out")" != end ]; then
        echo "FAIL $label broke off: $(tail -n 1 "$errors")" >>"$out"
    fi
    grep -E '^(ok  |FAIL) ' "$out" | tee -a "$logs/lines"
}

# both BINDING NAME...: the clients, each by both transports at the same time
both() {
    local binding=$1 name by_rest
    shift
    for name in "$@"; do
        client "$name" rest "$url" "$binding" &
        by_rest=$!
        client "$name" jsonrpc "$url" "$binding"
        wait "$by_rest"
    done
}
