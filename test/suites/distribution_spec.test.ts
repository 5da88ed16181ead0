/** @tier heavy @quarter 3 @covers engines/registry/registry models/registries/registry */
// The conformance test of opencontainers/distribution-spec against the embedded registry: of 1.1, and of what its main
// prepares.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startDeployService, type DeployService } from '../support/deployments/deploy';
import { freePort } from '../support/processes/free_port';
import { describeSuite, type Outcome } from '../support/runner/suites';

const RUN_MS = 600_000;
/** What 1.2 adds, and what is optional. */
const MORE = {
  OCI_API_BLOBS_DIGEST_HEADER: 'true',
  OCI_API_BLOBS_UPLOAD_CANCEL: 'true',
  OCI_API_MANIFESTS_DIGEST_HEADER: 'true',
  OCI_API_MANIFESTS_TAG_PARAM: 'true',
};

describeSuite('distribution-spec', ['distribution-spec/conformance/conformance'], (place) => {
  let service: DeployService;
  let environment: Record<string, string>;
  const directory = mkdtempSync(path.join(tmpdir(), 'distribution-spec-'));

  beforeAll(async () => {
    const port = await freePort();
    service = await startDeployService({ REGISTRY_PORT: String(port) });
    const made = await service.call('POST', '/v2/registries', {
      body: { name: 'conformance' },
      headers: { Prefer: 'wait=20' },
    });
    expect([made.status, made.body.status]).toEqual([201, 'active']);
    const body = { name: 'conformance', permissions: ['pull', 'push', 'delete'] };
    const robot = (await service.call('POST', '/v2/robot_accounts', { body })).body;
    environment = {
      OCI_REGISTRY: `localhost:${port}`,
      OCI_TLS: 'disabled',
      OCI_REPO1: 'conformance/one',
      OCI_REPO2: 'conformance/two',
      OCI_USERNAME: robot.username,
      OCI_PASSWORD: robot.secret,
    };
  }, 120_000);
  afterAll(async () => {
    await service?.close();
    rmSync(directory, { recursive: true, force: true });
  }, 60_000);

  test.each([
    ['1.1', {}],
    ['dev', MORE],
  ])(
    'version %s: no test fails',
    async (version, more) => {
      const results = path.join(directory, version);
      const env = { ...environment, ...more, OCI_VERSION: version, OCI_RESULTS_DIR: results };
      await runConformance(place('distribution-spec/conformance/conformance'), directory, env);
      const outcomes = outcomesIn(readFileSync(path.join(results, 'junit.xml'), 'utf8'));
      const named = (outcome: Outcome): string[] => outcomes.filter((one) => one[1] === outcome).map(([name]) => name);
      process.stdout.write(
        `distribution-spec ${version}: ${named('passed').length} passed, ${named('failed').length} failed, ` +
          `${named('skipped').length} skipped\n`,
      );
      expect(named('failed')).toEqual([]);
      expect(named('passed').length).toBeGreaterThan(500);
    },
    RUN_MS,
  );
});

/** Its exit code is that of the result, which is read from its report. */
function runConformance(program: string, cwd: string, env: Record<string, string>): Promise<void> {
  return new Promise((resolve) => {
    execFile(program, [], { cwd, env: { PATH: process.env.PATH, ...env }, maxBuffer: 64 << 20 }, () => resolve());
  });
}

/** Name and outcome of each test of a report in the form of JUnit. */
function outcomesIn(report: string): [string, Outcome][] {
  return [...report.matchAll(/<testcase name="([^"]*)"[^>]*?(\/>|>([\s\S]*?)<\/testcase>)/g)].map(
    ([, name = '', , inner = '']) => {
      if (/<(failure|error)\b/.test(inner)) return [name, 'failed'];
      return [name, inner.includes('<skipped') ? 'skipped' : 'passed'];
    },
  );
}
