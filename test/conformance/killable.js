// Runs one verb of a driver, and kills itself with SIGKILL at the n-th continuation of a promise: after every await
// there is one. Argument: {module, factory, options, verb, desired, killAt}. Prints the number of continuations.
require('../support/typescript');
const { createHook } = require('node:async_hooks');
const path = require('node:path');

const { module: file, factory, options, verb, desired, killAt } = JSON.parse(process.argv[2]);
const root = path.join(__dirname, '../..');
const { driverContext } = require(path.join(root, 'drivers/driver.ts'));
const driver = require(path.join(root, file))[factory](options);

const promises = new Set();
let continuations = 0;
const hook = createHook({
  init(id, type) {
    if (type === 'PROMISE') promises.add(id);
  },
  before(id) {
    if (promises.has(id) && ++continuations === killAt) process.kill(process.pid, 'SIGKILL');
  },
});

async function work() {
  const ctx = driverContext(20_000);
  if (verb === 'fingerprint') return driver.fingerprint(ctx);
  const seen = await driver.observe(desired, ctx);
  hook.enable();
  await driver[verb](desired, seen, ctx);
  hook.disable();
  return continuations;
}

work().then(
  (result) => process.stdout.write(JSON.stringify(result)),
  (error) => {
    process.stderr.write(String(error.stack));
    process.exitCode = 1;
  },
);
