// Required by the program of an upgrade: while it watches the new release, its clock runs WATCH_TIMES as fast, so that
// a test need not sit out the 90 seconds.
const files = require('node:fs/promises');

const { now } = Date;
const times = Number(process.env.WATCH_TIMES ?? '1');
let [ahead, since] = [0, null];
Date.now = () => now() + ahead + (since === null ? 0 : (now() - since) * (times - 1));

const { rename } = files;
files.rename = async (from, to) => {
  await rename(from, to);
  if (!String(to).endsWith('/state.json')) return;
  const { step, direction } = JSON.parse(await files.readFile(to, 'utf8'));
  const isWatching = step === 'watch' && direction === 'forward';
  if (isWatching === (since !== null)) return;
  if (isWatching) since = now();
  else [ahead, since] = [Date.now() - now(), null];
};
