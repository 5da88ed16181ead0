// A container registry in a process of its own that gets one request, or collects its garbage once, and kills itself
// with SIGKILL at the n-th continuation of a promise from then on. Argument: {config, step, killAt}. Prints `done` once
// the step was acknowledged, and the number of continuations.
require('../runner/typescript');
const { writeSync } = require('node:fs');
const path = require('node:path');
const { killSelfAt } = require('../processes/kill_at');

const root = path.join(__dirname, '../../..');
const load = (file) => require(path.join(root, file));
const { config, step, killAt } = JSON.parse(process.argv[2]);
const { openRegistry } = load('server/agents/registry.ts');
const { loadKeyRing, secretBox } = load('core/secrets.ts');
const { openControlDatabase } = load('db/control_database.ts');
const { job } = load('jobs/registries/registry.ts');

const STDOUT = 1;
const killing = killSelfAt(killAt);

async function send(port, { method, path: place, headers, body }) {
  const bytes = body === undefined ? undefined : Buffer.from(body, 'base64');
  const answer = await fetch(`http://127.0.0.1:${port}${place}`, { method, headers, body: bytes });
  if (answer.status >= 300) throw new Error(`${method} ${place}: ${answer.status} ${await answer.text()}`);
  // At once: what the client has read counts.
  writeSync(STDOUT, 'done\n');
}

async function work() {
  const database = openControlDatabase(config.databaseUrl, { poolSize: 4 });
  const secrets = secretBox(loadKeyRing({ setting: config.secretKey, dataDir: config.dataDir }));
  const log = { info() {}, warn() {}, error: (...given) => console.error(...given) };
  const registry = await openRegistry({ config, secrets, database, log });
  killing.start();
  if (step.collect) {
    const ctx = {
      sql: database,
      config,
      drivers: { host: { registry: registry.driver } },
      signal: new AbortController().signal,
    };
    await job.reconcile({ ...step.collect, status: 'active', driver: 'embedded', deleted_at: null }, ctx);
  } else {
    await send(registry.driver.port, step);
  }
  return killing.stop();
}

work().then(
  (count) => process.stdout.write(String(count), () => process.exit(0)),
  (error) => process.stderr.write(String(error.stack), () => process.exit(1)),
);
