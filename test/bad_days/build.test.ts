/** @tier heavy @quarter 1 @covers drivers/builder jobs/deployments/deployment */
// Builds that want too much: each is ended at its limit and says so, the version before goes on, and nothing stays
// behind.
import { nothingOrphaned } from '../support/processes/bad_days';
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { nodeApp } from '../support/git/repositories';
import { withConfig } from '../support/config';

const SECONDS = 12;

let service: DeployService | undefined;
afterEach(() => service?.close(), 60_000);

const greedy: [string, RegExp][] = [
  [
    'head -c 1000000000 /dev/zero | tr "\\0" x | fold -w 100',
    // The line that names the step is no longer there.
    /^The build( step `npm run build`)? was ended because it printed more than 2 MB\. Make it print less/,
  ],
  [
    'head -c 2000000000 /dev/zero > big; sleep 60',
    /^The build step `npm run build` was ended because its files and its cache grew beyond 64 MB or 8192 files\./,
  ],
  [
    'node --max-old-space-size=4000 -e "const all = []; for (;;) all.push(Buffer.alloc(1e6, 1))"',
    /^The build step `npm run build` was ended because it used more than 256 MB of memory\. Make it use less/,
  ],
];

const IN_TIME = new RegExp(
  `^The build step \`npm run build\` was ended because the deployment took longer than ${SECONDS} seconds\\.`,
);
const endless: [string, RegExp][] = [
  ['echo the last words; sleep 1000 & sleep 1000', new RegExp(`${IN_TIME.source} Its last output: the last words\\.$`)],
  // Up to the number of processes that a build may have; none of them is busy, and each has left the session of the
  // build.
  [
    'while :; do (setsid sleep 600 &) || sleep 1; done',
    new RegExp(`${IN_TIME.source}|^The build step .npm run build. (ended with|was ended because it used more)`),
  ],
];

const building = (script: string) => ({
  'package.json': JSON.stringify({
    name: 'x',
    version: '1.0.0',
    scripts: { build: 'sh build.sh', start: 'node server.js' },
  }),
  'build.sh': `${script}\n`,
});

/** Builds all of them at once, and looks what is left. */
async function fail(present: DeployService, all: TestApplication[], builds: [string, RegExp][]): Promise<string[]> {
  const ends = await Promise.all(
    all.map(async (application, index) => {
      application.push(building((builds[index] as [string, RegExp])[0]));
      return application.deploy();
    }),
  );
  expect(ends.map(({ status_reason }) => status_reason)).toEqual(
    builds.map(([, reason]) => expect.stringMatching(reason)),
  );
  expect(ends.map(({ status }) => status)).toEqual(builds.map(() => 'failed'));
  await nothingOrphaned(present);
  return ends.map(({ id }) => id);
}

test('a build that prints a gigabyte, that fills the disk, that takes all memory', async () => {
  const present = (service = await startDeployService({
    BUILD_CONCURRENCY: '3',
    ...withConfig({ buildOutputMb: 2 }),
    BUILD_DISK_MB: '64',
    BUILD_MEMORY_MB: '256',
  }));
  const all = await Promise.all(greedy.map(() => present.application(nodeApp('v1'))));
  expect((await Promise.all(all.map((application) => application.deploy()))).map(({ status }) => status)).toEqual(
    greedy.map(() => 'active'),
  );
  const [printed] = await fail(present, all, greedy);
  for (const application of all)
    expect([(await application.get()).status, (await application.visit()).body]).toEqual(['running', 'v1']);
  // What was printed up to the end is there.
  const [lines] = await present.sql<{ bytes: number }>(
    `select sum(length(message)) as bytes from log_lines where deployment_id = $1 and source <> 'system'`,
    [printed],
  );
  expect(Number(lines?.bytes)).toBeGreaterThan(1e6);
}, 120_000);

test('a build that hangs, and one that forks without end; the next one finds room', async () => {
  const present = (service = await startDeployService({
    BUILD_CONCURRENCY: '2',
    BUILD_MEMORY_MB: '512',
    BUILD_TIMEOUT_SECONDS: String(SECONDS),
  }));
  await fail(present, await Promise.all(endless.map(() => present.application(nodeApp('v1')))), endless);
  const after = await present.application(nodeApp('after'));
  expect((await after.deploy()).status).toBe('active');
}, 120_000);
