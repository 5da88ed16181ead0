#!/bin/bash
# Stands in for systemctl where systemd does not run: restarts the service when it ends, and runs the unit of upgrades
# again when a signal has ended it, as their units say.
cd /run/stand-in || exit 1

supervise() {
  echo 0 >restarts
  while [ ! -e stopping ]; do
    env -i PATH="$PATH" HOME=/root /opt/platform/current/bin/platform start >>platform.log 2>&1 &
    echo $! >pid
    wait $!
    [ -e stopping ] && exit
    echo $(($(cat restarts) + 1)) >restarts
    sleep 0.3
  done
}

stop() {
  supervisor=$(cat supervisor 2>/dev/null)
  touch stopping
  kill -TERM "$(cat pid 2>/dev/null)" 2>/dev/null
  while [ -n "$supervisor" ] && kill -0 "$supervisor" 2>/dev/null; do sleep 0.05; done
  rm -f stopping pid supervisor
}

start() {
  kill -0 "$(cat supervisor 2>/dev/null)" 2>/dev/null && return
  (supervise </dev/null >/dev/null 2>&1 9>&- & echo $! >supervisor)
  while [ ! -s pid ]; do sleep 0.05; done
}

carry_out() {
  [ -e /opt/platform/.upgrade/state.json ] || exit 0
  while :; do
    flock --close --nonblock --conflict-exit-code 0 /opt/platform/.upgrade/lock \
      /opt/platform/.upgrade/with/bin/platform upgrade --carry-out >>upgrade.log 2>&1 </dev/null
    [ $? -gt 128 ] || exit 0
    [ ! -e /run/stand-in/no-restart ] || exit 0
  done
}

# One after the other, as the jobs of systemd: who asked for one may be killed, and ask for the next.
serially() {
  exec 9>jobs
  flock 9
  for job in "$@"; do "$job"; done
}

case "$1 $2" in
  'restart platform.service') serially stop start ;;
  'stop platform.service') serially stop ;;
  'start platform.service') serially start ;;
  'show platform.service')
    pid=$(cat pid 2>/dev/null)
    kill -0 "${pid:-none}" 2>/dev/null || pid=0
    echo "ActiveState=active"
    echo "MainPID=${pid:-0}"
    echo "NRestarts=$(cat restarts 2>/dev/null)"
    ;;
  'show platform-setup.service')
    kill -0 "$(cat setup.pid 2>/dev/null)" 2>/dev/null && echo ActiveState=active || echo ActiveState=inactive
    ;;
  'start --no-block') (carry_out >/dev/null 2>&1 &) ;;
esac
