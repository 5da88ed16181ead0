#!/bin/sh
# The platform as installed: `platform start` is the service, everything else the operator's command.
here=$(dirname "$(dirname "$(readlink -f "$0")")")
settings=${PLATFORM_ENV_FILE:-/etc/platform/platform.env}
PATH=$here/bin:$PATH
NODE_ENV=production
export PATH NODE_ENV
case ${1-} in
  start)
    shift
    exec "$here/bin/node" --env-file-if-exists="$settings" --min-semi-space-size=8 --max-semi-space-size=8 \
      --initial-old-space-size=80 "$here/app/dist/server/main.js" "$@"
    ;;
  version)
    exec cat "$here/VERSION"
    ;;
esac
exec "$here/bin/node" --env-file-if-exists="$settings" "$here/app/dist/server/operator/main.js" "$@"
