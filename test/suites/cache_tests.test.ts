/** @tier heavy @quarter 3 @covers engines/cdn/cdn engines/ingress/ingress */
// http-tests/cache-tests against the embedded cache of CDN zones.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { freePort } from '../support/processes/free_port';
import { startService, type TestService } from '../support/service';
import { describeSuite, judge, knownFailures, type Outcome } from '../support/runner/suites';
import { waitFor } from '../support/wait_for';

const run = promisify(execFile);
const RUN_MS = 600_000;
const RESOLVE = path.resolve(__dirname, '../support/runner/resolve_name.js');

/** Prints the name and the outcome of each test that the suite requires of a shared cache. */
const JUDGE = `
const [place, results] = process.argv.slice(1);
const { determineTestResult, resultTypes } = await import(place + '/test-engine/lib/results.mjs');
const { default: suites } = await import(place + '/tests/index.mjs');
const found = JSON.parse((await import('node:fs')).readFileSync(results, 'utf8'));
const required = suites.flatMap(({ tests }) => tests)
  .filter(({ kind = 'required', browser_only }) => kind === 'required' && !browser_only);
// Without its dependencies: most depend on what keeps nothing that says nothing, and the zone has a default.
console.log(JSON.stringify(required.map(({ id }) =>
  [id, determineTestResult(suites, id, found, false) === resultTypes.pass ? 'passed' : 'failed'])));
`;

describeSuite('cache-tests', ['cache-tests/node_modules'], (place) => {
  const suite = place('cache-tests');
  const directory = mkdtempSync(path.join(tmpdir(), 'cache-tests-'));
  let service: TestService;
  let origin: ChildProcess;
  let base: string;

  beforeAll(async () => {
    const [originPort, port] = [await freePort(), await freePort()];
    const settings = {
      npm_config_protocol: 'http',
      npm_config_port: String(originPort),
      npm_config_pidfile: path.join(directory, 'pid'),
    };
    const env = { PATH: process.env.PATH, ...settings };
    origin = spawn('node', ['test-engine/server/server.mjs'], { cwd: suite, env, stdio: 'ignore' });
    const url = `http://127.0.0.1:${originPort}`;
    await waitFor('the origin', () => fetch(url).catch(() => null));
    service = await startService({
      worker: true,
      settings: { ALLOW_PRIVATE_ADDRESSES: '1', INGRESS_PORT: String(port) },
    });
    const body = { name: 'suite', origin: { type: 'url', url }, cache: { default_ttl_seconds: 3600 } };
    const made = await service.call('POST', '/v2/cdn_zones', { body, headers: { Prefer: 'wait=20' } });
    expect([made.status, made.body.status]).toEqual([201, 'active']);
    base = `http://${made.body.hostname}:${port}`;
  }, 60_000);
  afterAll(async () => {
    await service?.close();
    origin?.kill();
    rmSync(directory, { recursive: true, force: true });
  }, 60_000);

  test(
    'the embedded cache does what is required, but for what docs/CDN.md names',
    async () => {
      const env = {
        PATH: process.env.PATH,
        RESOLVE_NAME: new URL(base).hostname,
        npm_config_base: base,
        npm_package_config_id: '',
      };
      const options = { cwd: suite, env, maxBuffer: 64 << 20, timeout: RUN_MS };
      const { stdout } = await run('node', ['--no-warnings', '--require', RESOLVE, 'test-engine/cli.mjs'], options);
      const results = path.join(directory, 'results.json');
      writeFileSync(results, stdout.slice(stdout.indexOf('{')));
      const judged = await run('node', ['--input-type=module', '-e', JUDGE, '--', pathToFileURL(suite).href, results]);
      const outcomes = new Map(JSON.parse(judged.stdout) as [string, Outcome][]);
      const { offered, unexpected, stale, unknown } = judge(outcomes, knownFailures('test/suites/cache_tests.tsv'));
      process.stdout.write(`cache-tests: ${offered.passed} of ${outcomes.size} required tests pass\n`);
      expect([unexpected, stale, unknown]).toEqual([[], [], []]);
      expect(offered.passed).toBeGreaterThan(150);
    },
    RUN_MS,
  );
});
