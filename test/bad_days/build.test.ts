// Builds that want too much: each is ended at its limit and says so, the version before goes on, and nothing stays behind.
import { nothingOrphaned } from '../support/bad_days';
import { startDeployService, type DeployService } from '../support/deploy';
import { nodeApp } from '../support/repositories';

const SECONDS = 15;

let service: DeployService;
beforeAll(async () => {
  service = await startDeployService({ BUILD_CONCURRENCY: '6', BUILD_OUTPUT_MB: '2', BUILD_DISK_MB: '64', BUILD_MEMORY_MB: '256', BUILD_TIMEOUT_SECONDS: String(SECONDS) });
}, 60_000);
afterAll(() => service?.close(), 60_000);

const IN_TIME = new RegExp(`^(The build was ended because the deployment took longer than|The deployment was given up: it did not end within) ${SECONDS} seconds\\.`);
const builds: [string, string, RegExp][] = [
  ['prints a gigabyte', 'head -c 1000000000 /dev/zero | tr "\\0" x | fold -w 100', /^The build was ended because it printed more than 2 MB\. The last lines of the log/],
  ['fills the disk', 'head -c 2000000000 /dev/zero > big; sleep 60', /^The build was ended because its files and its cache grew beyond 64 MB\./],
  ['takes memory without end', 'node --max-old-space-size=4000 -e "const all = []; for (;;) all.push(Buffer.alloc(1e6, 1))"', /^The build was ended because it used more than 256 MB of memory\./],
  ['hangs', 'sleep 1000 & sleep 1000', IN_TIME],
  // Up to the number of processes that a build may have; none of them is busy, and each has left the session of the build.
  ['forks without end', 'while :; do (setsid sleep 600 &) || sleep 1; done', new RegExp(`${IN_TIME.source}|^The build (failed with|was ended because it used more)`)],
];

const building = (script: string) => ({ 'package.json': JSON.stringify({ name: 'x', version: '1.0.0', scripts: { build: 'sh build.sh', start: 'node server.js' } }), 'build.sh': `${script}\n` });

test('a build that prints a gigabyte, fills the disk, takes all memory, hangs, forks without end', async () => {
  const all = await Promise.all(builds.map(() => service.application(nodeApp('v1'))));
  for (const application of all) expect((await application.deploy()).status).toBe('active');
  const ends = await Promise.all(all.map(async (application, index) => {
    application.push(building((builds[index] as (typeof builds)[number])[1]));
    return application.deploy();
  }));
  expect(ends.map(({ status_reason }) => status_reason)).toEqual(builds.map(([, , reason]) => expect.stringMatching(reason)));
  expect(ends.map(({ status }) => status)).toEqual(builds.map(() => 'failed'));
  await nothingOrphaned(service);
  for (const application of all) expect([(await application.get()).status, (await application.visit()).body]).toEqual(['running', 'v1']);
  // What was printed up to the end is there, and not much more than the limit.
  const [{ bytes }] = await service.sql<{ bytes: number }>(`select sum(length(message)) as bytes from log_lines where deployment_id = $1 and source <> 'system'`, [ends[0].id]) as [{ bytes: number }];
  expect(Number(bytes)).toBeGreaterThan(1e6);
  const after = await service.application(nodeApp('after'));
  expect((await after.deploy()).status).toBe('active');
}, 120_000);
