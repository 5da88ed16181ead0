#!/bin/sh
# The platform as installed: `platform start` and its other processes, and the operator's command.
here=$(dirname "$(dirname "$(readlink -f "$0")")")
PATH=$here/bin:$PATH NODE_ENV=production
export PATH NODE_ENV
node() {
  exec "$here/bin/node" --env-file-if-exists=/etc/platform/platform.env "$@"
}
case ${1-} in
  start)
    shift
    # With the sizes of memory that the scripts of package.json have, too.
    case ${1-} in
      ingress | dns | probe) node --max-semi-space-size=8 "$here/app/dist/server/$1.js" ;;
      worker) program=worker && shift ;;
      *) program=main ;;
    esac
    node --min-semi-space-size=8 --max-semi-space-size=8 --initial-old-space-size=80 \
      "$here/app/dist/server/$program.js" "$@"
    ;;
  programs)
    shift
    node "$here/app/tools/scripts/setup.mjs" "$@"
    ;;
  version) exec cat "$here/VERSION" ;;
esac
node "$here/app/dist/server/operator/main.js" "$@"
