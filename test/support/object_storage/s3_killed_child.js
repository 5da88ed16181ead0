// An S3 endpoint in a process of its own that gets one request and kills itself with SIGKILL at the n-th continuation
// of a promise from then on. Argument: {config, step, bucketId, killAt}. Prints the number of continuations.
require('../runner/typescript');
const path = require('node:path');
const { killSelfAt } = require('../processes/kill_at');

const root = path.join(__dirname, '../../..');
const load = (file) => require(path.join(root, file));
const { config, step, bucketId, killAt } = JSON.parse(process.argv[2]);
const { openObjectStorageAgent } = load('server/agents/object_storage/object_storage.ts');
const { loadKeyRing, secretBox } = load('core/secrets.ts');
const { openPlatform } = load('server/platform/platform.ts');
const { openControlDatabase } = load('db/control_database.ts');
const { applyLifecycle, LIFECYCLE_START } = load('models/object_storage/bucket/lifecycle.ts');
const { databaseUrl } = config;

const killing = killSelfAt(killAt);

async function work() {
  const database = openControlDatabase(databaseUrl, { poolSize: 4 });
  const secrets = secretBox(loadKeyRing({ setting: config.secretKey, dataDir: config.dataDir }));
  const log = { info() {}, warn() {}, error: (...given) => console.error(...given) };
  const identities = { onForget: () => () => {} };
  const platform = step.platform ? await openPlatform(config) : { config, secrets, database, log, identities };
  const agent = await openObjectStorageAgent(platform);
  killing.start();
  if (step.lifecycle) {
    const later = Date.now() + 10 * 86_400_000;
    for (let at = LIFECYCLE_START; at;) at = await applyLifecycle(database, bucketId, step.lifecycle, at, later);
  } else {
    const { method, path: place, headers, body } = step;
    const answer = await fetch(`http://127.0.0.1:${agent.port}${place}`, { method, headers, body });
    await answer.text();
    if (answer.status >= 300) throw new Error(`${method} ${place}: ${answer.status}`);
  }
  return killing.stop();
}

work().then(
  (count) => process.stdout.write(String(count), () => process.exit(0)),
  (error) => process.stderr.write(String(error.stack), () => process.exit(1)),
);
