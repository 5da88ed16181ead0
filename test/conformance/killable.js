// Runs one verb of a driver, and kills itself with SIGKILL at the n-th continuation of a promise: after every await
// there is one. Argument: {module, factory, options, verb, desired, killAt}. Prints the number of continuations.
require('../support/runner/typescript');
const path = require('node:path');
const { killSelfAt } = require('../support/processes/kill_at');

const { module: file, factory, options, verb, desired, killAt } = JSON.parse(process.argv[2]);
const root = path.join(__dirname, '../..');
const { driverContext } = require(path.join(root, 'core/driver.ts'));
const driver = require(path.join(root, file))[factory](options);

const killing = killSelfAt(killAt);

async function work() {
  const ctx = driverContext(20_000);
  if (verb === 'fingerprint') return driver.fingerprint(ctx);
  const seen = await driver.observe(desired, ctx);
  killing.start();
  await driver[verb](desired, seen, ctx);
  return killing.stop();
}

work().then(
  (result) => process.stdout.write(JSON.stringify(result)),
  (error) => {
    process.stderr.write(String(error.stack));
    process.exitCode = 1;
  },
);
