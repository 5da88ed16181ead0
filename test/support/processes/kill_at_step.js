// Required by the program of an upgrade: ends it with SIGKILL when its journal names the step KILL_AT, after
// KILL_AFTER_MS, on its way KILL_DIRECTION; with KILL_ALL every other process of its machine, too, as a power cut does.
// Once: the file KILLED is there then.
const fs = require('node:fs');
const files = require('node:fs/promises');

const { KILL_AT, KILL_AFTER_MS = '0', KILL_DIRECTION = 'forward', KILL_ALL, KILLED } = process.env;
const { rename } = files;
files.rename = async (from, to) => {
  await rename(from, to);
  if (!KILL_AT || !String(to).endsWith('/state.json') || fs.existsSync(KILLED)) return;
  const { step, direction } = JSON.parse(fs.readFileSync(to, 'utf8'));
  if (step !== KILL_AT || direction !== KILL_DIRECTION) return;
  fs.writeFileSync(KILLED, step);
  const kill = () => {
    // In a namespace of its own alone: elsewhere it would be the machine of whoever runs the tests.
    const isApart = fs.readFileSync('/proc/1/cmdline', 'utf8').includes('upgrade_namespace.sh');
    if (KILL_ALL && isApart) process.kill(-1, 'SIGKILL');
    process.kill(process.pid, 'SIGKILL');
  };
  if (Number(KILL_AFTER_MS)) setTimeout(kill, Number(KILL_AFTER_MS));
  else kill();
};
