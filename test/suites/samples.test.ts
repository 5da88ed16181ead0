/** @tier heavy @quarter 3 @covers drivers/builder drivers/toolchain jobs/deployments/deployment */
// Public sample applications, deployed untouched from a Git server on this machine, as the table says.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { configuredApplication, startDeployService, type DeployService } from '../support/deployments/deploy';
import { readSource } from '../support/runner/repository';
import { describeSuite } from '../support/runner/suites';

const TABLE = 'test/suites/samples.tsv';
const LANES = 2;
/** Node.js and Python as users have them, where tests save the downloads. */
const AS_IT_COMES: Record<string, string> = {
  PREFERRED_NODE: 'long_term',
  PREFERRED_PYTHON: 'newest',
  QUOTAS: '{"applications": 100}',
  /** Such as the network of a place whose registries are not public: {"NETWORK": "shared"}. */
  ...(JSON.parse(process.env.SUITES_SETTINGS ?? '{}') as Record<string, string>),
};
const DEPLOYED_WITHIN_MS = 900_000;
const CLEARED_WITHIN_MS = 300_000;

interface Sample {
  /** The folder below `samples`: owner and name, with a plus between them. */
  repository: string;
  branch: string;
  root: string;
  settings: Record<string, unknown>;
  /** `serves`, or a part of the reason why not. */
  expected: string;
}

interface Seen {
  status: string;
  reason: string | null;
  seconds: number;
  visit: number;
}

const samples = readSource(TABLE)
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line): Sample => {
    const [repository = '', branch = '', root = '', settings = '', shared = '', isolated = shared] = line.split('\t');
    const expected = AS_IT_COMES.NETWORK === 'isolated' ? isolated : shared;
    return { repository, branch, root, settings: settings === '-' ? {} : JSON.parse(settings), expected };
  });
const nameOf = ({ repository, root }: Sample): string => (root === '-' ? repository : `${repository} ${root}`);

describeSuite('samples', [], (place) => {
  let service: DeployService;
  const there = ({ repository }: Sample): boolean =>
    repository.includes(process.env.SUITES_ONLY ?? '') && existsSync(place(`samples/${repository}`));
  const seen = new Map<string, Promise<Seen>>();

  beforeAll(async () => {
    service = await startDeployService(AS_IT_COMES, CLEARED_WITHIN_MS);
    const waiting = samples.filter(there);
    const turns = waiting.map((_, turn) => turn);
    const lanes: Promise<unknown>[] = Array.from({ length: LANES }, () => Promise.resolve());
    for (const turn of turns) {
      const sample = waiting[turn] as Sample;
      const result = (lanes[turn % LANES] as Promise<unknown>).then(() => deploy(sample, turn));
      lanes[turn % LANES] = result.catch(() => null);
      seen.set(nameOf(sample), result);
    }
  }, 120_000);
  afterAll(() => service?.close(), 2 * CLEARED_WITHIN_MS);

  async function deploy({ repository, branch, root, settings }: Sample, turn: number): Promise<Seen> {
    const name = `sample-${turn}`;
    const from = place(`samples/${repository}`);
    const only = branch === '-' ? [] : ['--branch', branch];
    execFileSync('git', ['clone', '--quiet', '--bare', ...only, from, service.git.folder(name)], { stdio: 'pipe' });
    execFileSync('git', ['-C', service.git.folder(name), 'config', 'http.receivepack', 'true']);
    const source = { type: 'git', repository_url: service.git.url(name), ...(branch === '-' ? {} : { branch }) };
    const made = await service.call('POST', '/v2/applications', { body: { name, source } });
    expect([made.status, made.text]).toEqual([201, expect.anything()]);
    const wanted = { ...(root === '-' ? {} : { build: { root_directory: root } }), ...settings };
    const application = await configuredApplication(service, made.body, wanted);
    const started = performance.now();
    const ended = await application.ended((await application.ask()).id, DEPLOYED_WITHIN_MS);
    const seconds = Math.round((performance.now() - started) / 1000);
    const visit = ended.status === 'active' ? (await application.visit()).status : 0;
    if (ended.status === 'failed' && process.env.SUITES_KEEP)
      process.stdout.write(`${repository}: ${(await application.log(ended.id)).slice(-30).join('\n')}\n`);
    const found = { status: ended.status, reason: ended.status_reason, seconds, visit };
    process.stdout.write(`${path.join(repository, root)}\t${seconds} s\t${JSON.stringify(found)}\n`);
    return found;
  }

  for (const sample of samples) {
    const name = nameOf(sample);
    const run = there(sample) ? test : test.skip;
    run(
      `${name}: ${sample.expected}`,
      async () => {
        const found = await seen.get(name);
        if (sample.expected !== 'serves')
          return expect(found).toMatchObject({
            status: 'failed',
            reason: expect.stringContaining(sample.expected),
          });
        expect(found).toMatchObject({ status: 'active' });
        expect(found?.visit).toBeLessThan(500);
      },
      DEPLOYED_WITHIN_MS * 2,
    );
  }
});
