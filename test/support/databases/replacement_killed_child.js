// Replaces the data of a server directory, and kills itself with SIGKILL at the n-th continuation of a promise.
// Argument: {directory, id, outcome, killAt}; outcome `bad`: no server starts with the new data; `undo`: only puts the
// old ones back. Prints the number of continuations, and how it ended.
require('../runner/typescript');
const { readFileSync, writeFileSync } = require('node:fs');
const path = require('node:path');
const { killSelfAt } = require('../processes/kill_at');

const root = path.join(__dirname, '../../..');
const { directory, id, outcome, killAt } = JSON.parse(process.argv[2]);
const { driverContext } = require(path.join(root, 'core/driver.ts'));
const { requireServerDirectory } = require(path.join(root, 'drivers/hosted_server/server_directory.ts'));
const { isReplacing, replaceData, restorePreviousData } = require(
  path.join(root, 'drivers/hosted_server/replacement.ts'),
);

const engine = { name: 'trial', directory, disks: true };
const bytes = 12 * 2 ** 20;
const ctx = driverContext(20_000);
const killing = killSelfAt(killAt);

async function work() {
  killing.start();
  const serverDirectory = await requireServerDirectory(engine, id);
  if (outcome === 'undo') {
    if (await isReplacing(serverDirectory)) await restorePreviousData(serverDirectory, ctx);
    return;
  }
  const content = () => readFileSync(path.join(serverDirectory.data, 'content'), 'utf8');
  await replaceData(
    serverDirectory,
    {
      key: outcome,
      disk: { engine, bytes },
      fill: async (temporary) => writeFileSync(path.join(temporary, 'content'), 'new'),
      stop: async () => undefined,
      verify: async () => {
        if (content() !== 'new') throw new Error(`verified with ${content()} data`);
        if (outcome === 'bad') throw new Error('no good');
      },
      rollBack: async () => {
        if (content() !== 'old') throw new Error(`rolled back to ${content()} data`);
      },
    },
    ctx,
  );
}

const print = (ended) => process.stdout.write(JSON.stringify({ continuations: killing.stop(), ended }));

work().then(
  () => print('done'),
  (error) => print(`${error.reason ?? error.stack}${error.cause ? `: ${error.cause.message}` : ''}`),
);
