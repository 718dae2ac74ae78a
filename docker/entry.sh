#!/bin/sh
# What a container of Duolog runs.
#
#     serve [OPTIONS]     a host, as `duolog serve`; before its first start it makes a token
#     anything else       as `duolog anything else`
#
# A container listens beyond loopback, and that takes tokens. The first one is made on the first
# start and written to `first-token` beside the token file, for its owner alone; the token file keeps
# its hash only. It is never made again while that file is there. It is not printed: logs are kept
# for long, and read by others. To have tokens of your own, mount a file and name it in
# DUOLOG_TOKEN_FILE, or pass --tokens.
#
#     DUOLOG_LOG           the log's folder
#     DUOLOG_LISTEN        HOST:PORT
#     DUOLOG_TOKEN_FILE    the token file
#     DUOLOG_FIRST_ROLE    role of the first token: dba, unless said otherwise
#     DUOLOG_NEIGHBOURS    tokens for other containers, as NAME:ROLE:FILE, several with spaces. Each
#                          is made when the token file lacks its name, and written to FILE in place
#                          of being printed; FILE belongs on a volume that only its reader mounts
#     DUOLOG_FIRST_TOPICS  topics to make when they are missing, as NAME:PARTITIONS, several with
#                          spaces
set -eu

if [ "${1:-serve}" != serve ]; then
    exec duolog "$@"
fi
[ $# -eq 0 ] || shift

: "${DUOLOG_LOG:?is not set: it names the folder of the log}"
listen=${DUOLOG_LISTEN:-0.0.0.0:7070}
tokens=${DUOLOG_TOKEN_FILE:-$(dirname "$DUOLOG_LOG")/tokens}
umask 077

for option in "$@"; do
    case $option in
        --tokens | --tokens=*) tokens= ;;
    esac
done

neighbour() { # NAME ROLE FILE
    if grep -qF "\"name\": \"$1\"" "$tokens"; then
        test -s "$3" && return
        # Only its hash is left, which is no use to anybody: take it back.
        duolog token revoke "$1" --file "$tokens" --yes
    fi
    made=$(duolog token create --role "$2" --name "$1" --file "$tokens" --json)
    made=${made##*\"token\":\"}
    # Complete or absent: a reader that looks too early finds nothing. It is another user.
    printf '%s\n' "${made%%\"*}" > "$3.new"
    chmod 0444 "$3.new"
    mv "$3.new" "$3"
    unset made
}

if [ -n "$tokens" ]; then
    first=$(dirname "$tokens")/first-token
    if ! [ -e "$tokens" ] || [ -e "$first.new" ]; then
        : > "$first.new" # as long as it is there, nobody has seen the first token
        if grep -qF '"name": "first"' "$tokens" 2> /dev/null; then
            duolog token revoke first --file "$tokens" --yes
        fi
        duolog token create --role "${DUOLOG_FIRST_ROLE:-dba}" --name first --file "$tokens" --json \
            > "$first.made"
        sed 's/.*"token":"\([^"]*\)".*/\1/' "$first.made" > "$first"
        rm "$first.made" "$first.new"
        echo "The first token of this log is in $first. Read it there, keep it elsewhere and" \
            "remove the file: docker exec CONTAINER cat $first" >&2
    fi
    for each in ${DUOLOG_NEIGHBOURS:-}; do
        rest=${each#*:}
        neighbour "${each%%:*}" "${rest%%:*}" "${rest#*:}"
    done
    set -- --tokens "$tokens" "$@"
fi

for each in ${DUOLOG_FIRST_TOPICS:-}; do
    duolog topic create "${each%:*}" --partitions "${each##*:}" --if-not-exists > /dev/null
done

exec duolog serve --listen "$listen" "$@"
