// Replaces the data of a server directory, and ends or fails as it is told. Argument: {directory, id, outcome, at?}.
// outcome `bad`: no server starts with the new data; `undo`: only puts the old ones back.
// at: {step, act, continuation}; act `kill_within`: SIGKILL at this continuation of a promise within the step;
// `kill_after`; `fail`. Prints how many continuations each step has, and how it ended.
require('../runner/typescript');
const { readFileSync, writeFileSync } = require('node:fs');
const path = require('node:path');
const { killSelfAt } = require('../processes/kill_at');

const root = path.join(__dirname, '../../..');
const { directory, id, outcome, at } = JSON.parse(process.argv[2]);
const { DriverError, driverContext } = require(path.join(root, 'core/driver.ts'));
const { requireServerDirectory } = require(path.join(root, 'drivers/hosted_server/server_directory.ts'));
const { isReplacing, replaceData, replacementSteps, restorePreviousData } = require(
  path.join(root, 'drivers/hosted_server/replacement.ts'),
);

const engine = { name: 'trial', directory, disks: true };
const bytes = 12 * 2 ** 20;
const ctx = driverContext(20_000);
const continuations = {};

for (const step of replacementSteps) {
  const { run } = step;
  step.run = async (...given) => {
    const act = at?.step === step.name ? at.act : null;
    if (act === 'fail') throw new DriverError('transient', 'The test broke it.');
    const killing = killSelfAt(act === 'kill_within' ? at.continuation : 0);
    killing.start();
    await run(...given).finally(() => (continuations[step.name] = killing.stop()));
    if (act === 'kill_after') process.kill(process.pid, 'SIGKILL');
  };
}

async function work() {
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

const print = (ended) => process.stdout.write(JSON.stringify({ continuations, ended }));

work().then(
  () => print('done'),
  (error) => print(`${error.reason ?? error.stack}: ${error.cause?.message ?? error.message}`),
);
