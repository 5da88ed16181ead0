// Which test files a run takes (CONTRIBUTING.md): marks that are honoured, nothing that no run takes, and quarters that
// go round with the commits.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { readSource, repositoryFiles, ROOT } from '../support/runner/repository';
import {
  bareFiles,
  differsByUser,
  everyRun,
  heavyFiles,
  heavyTurn,
  isBareForUser,
  marksOf,
  QUARTERS,
  testFiles,
  touchesOf,
  TOUCHED_MAX,
  USER_ROOMS,
  userFiles,
} from '../support/runner/tiers';

const files = repositoryFiles();
const sources = files.filter((file) => /\.(ts|mjs|js)$/.test(file) && !/^(test|tools\/(?!scripts))/.test(file));
const isIn = (file: string, place: string): boolean =>
  file === place || file === `${place}.ts` || file.startsWith(place.replace(/\/?$/, '/'));

describe('marks of tiers', () => {
  it('stand in the first line and are well-formed', () => {
    expect(testFiles.length).toBeGreaterThan(300);
    const elsewhere = testFiles.filter((file) => /^.*@tier /m.test(readSource(file).replace(/^\/\*\* @tier .*\n/, '')));
    expect(elsewhere.filter((file) => file !== 'test/sources/tiers.test.ts')).toEqual([]);
    for (const file of testFiles) expect(() => marksOf(file)).not.toThrow();
  });

  it('cover sources that exist', () => {
    const lost = heavyFiles().flatMap((file) =>
      marksOf(file)
        .covers.filter((place) => !files.some((one) => isIn(one, place)))
        .map((place) => `${file}: ${place}`),
    );
    expect(lost).toEqual([]);
  });

  it('fill quarters of like size', () => {
    const sizes = QUARTERS.map((quarter) => heavyFiles().filter((file) => marksOf(file).quarter === quarter).length);
    expect(Math.min(...sizes)).toBeGreaterThan(Math.max(...sizes) * 0.75);
  });
});

describe('runs', () => {
  it('take each file in every run, in the heavy tier, or in both', () => {
    expect([...new Set([...everyRun(), ...heavyFiles()])].sort()).toEqual([...testFiles].sort());
  });

  it('have taken all heavy files after four quarters', () => {
    const taken = QUARTERS.flatMap((quarter) => heavyTurn(quarter, []).files);
    expect(taken.sort()).toEqual(heavyFiles().sort());
  });

  it('take no packages of registries in every run', () => {
    expect(everyRun().filter((file) => /^test\/(clients|starters)\//.test(file))).toEqual([]);
  });

  it('take heavy files that a change touches', () => {
    const conformance = 'test/engines/databases/conformance_redis.test.ts';
    const touched = (changed: string): string[] => heavyFiles().filter((file) => touchesOf(file, [changed]) > 0);
    expect(touched(conformance)).toEqual([conformance]);
    // By an import through files of the tests, and by what a test covers over HTTP.
    expect(touched('drivers/database/redis/driver.ts')).toContain(conformance);
    expect(touched('test/conformance/resource_driver.ts')).toContain(conformance);
    expect(touched('test/support/object_storage/s3_killed_child.js')).toContain(
      'test/engines/object_storage/object_storage_steps_killed.test.ts',
    );
    expect(touched('jobs/databases/database/port.ts')).toContain('test/engines/databases/databases_killed.test.ts');
    expect(touched('engines/dns/responder.ts')).not.toContain(conformance);
    expect(touched('docs/DNS.md')).toEqual([]);
  });

  it('build a cluster in its quarter, and for a change of what is of clusters alone', () => {
    const onCluster = (quarter: number, changed: string): boolean =>
      heavyTurn(quarter, [changed]).files.some((file) => file.startsWith('test/kubernetes/'));
    const general = 'server/agents/workloads/workloads.ts';
    const changes = [general, 'drivers/workload/kubernetes/pod_state.ts', 'drivers/kubernetes/client/client.ts'];
    expect(changes.map((changed) => onCluster(1, changed))).toEqual([false, true, true]);
    expect(heavyFiles().filter((file) => touchesOf(file, [general]) > 0)).toContain(
      'test/kubernetes/applications.test.ts',
    );
    expect(onCluster(2, 'docs/DNS.md')).toBe(true);
  });

  it('take of many touched files those that are changed themselves, and those that the change is about', () => {
    const everywhere = [
      'test/support/service.ts',
      'test/support/processes/program.ts',
      'test/support/deployments/deploy.ts',
    ];
    const first = heavyTurn(1, everywhere);
    expect([first.touched.length, first.left.length > 0]).toEqual([TOUCHED_MAX, true]);
    expect(first.touched.filter((file) => marksOf(file).quarter === 1)).toEqual([]);
    const last = first.left.at(-1) as string;
    expect(heavyTurn(1, [...everywhere, last]).touched[0]).toBe(last);
    const [room] = marksOf(last).covers;
    const inside = files.filter((file) => isIn(file, room as string)).slice(0, 4);
    expect(inside.length).toBeGreaterThan(0);
    expect(touchesOf(last, [...everywhere, ...inside])).toBe(touchesOf(last, everywhere) + inside.length);
  });
});

describe('the run as an ordinary user', () => {
  it('takes what drives runtimes, networks, disks, databases and starts', () => {
    const taken = QUARTERS.flatMap((quarter) => userFiles(quarter, heavyFiles(), []));
    for (const name of [
      'drivers/runtime/runtime',
      'drivers/runtime/network_gate',
      'deployments/serving',
      'databases/postgresql',
    ])
      expect(taken).toContain(`test/${name}.test.ts`);
    for (const name of ['start', 'embedded', 'tenant_networks', 'isolated_databases', 'hostile'].map(
      (one) => `server/${one}`,
    ))
      expect(taken).toContain(`test/${name}.test.ts`);
    const ofOneUser = /^test\/(contract|engines|sources|suites)\/|openapi|graphql/;
    expect(taken.filter((file) => ofOneUser.test(file))).toEqual([]);
    expect(new Set(taken).size).toBeLessThan(everyRun().length / 2);
    // Heavy files come with their quarter.
    expect(userFiles(1, [], []).filter((file) => marksOf(file).tier === 'heavy')).toEqual([]);
    expect(taken).toContain('test/server/demo.test.ts');
  });

  it('takes of the suite one half in turn where root has the run without optional programs', () => {
    const [first, third] = [userFiles(1, [], []), userFiles(3, [], [])];
    expect(first.filter((file) => third.includes(file))).toEqual([]);
    const all = userFiles(1, everyRun(), []);
    expect([...first, ...third].sort()).toEqual([...all].sort());
    expect(QUARTERS.map(isBareForUser)).toEqual([false, true, false, true]);
    expect(userFiles(2, [], [])).toEqual([]);
    const [one = ''] = third;
    expect(userFiles(1, [], [one])).toContain(one);
    expect(userFiles(1, [], files).length).toBe(first.length + TOUCHED_MAX);
  });

  it('without optional programs, takes both halves of the suite as both users in four quarters', () => {
    const taken = (quarter: number): string[] => bareFiles(quarter, []);
    for (const [one, other] of [
      [1, 3],
      [2, 4],
    ] as const) {
      expect(isBareForUser(one)).toBe(isBareForUser(other));
      expect(taken(one).filter((file) => taken(other).includes(file))).toEqual([]);
      expect([...taken(one), ...taken(other)]).toEqual(expect.arrayContaining(everyRun()));
      expect(Math.abs(taken(one).length - taken(other).length)).toBeLessThan(taken(one).length / 4);
    }
    const [far = ''] = taken(3);
    expect(bareFiles(1, [far])).toContain(far);
  });

  // What the program asks at its start, and what root alone may do; starts are among the tests above.
  const AT_START = [
    ...['server/agents/isolation.ts', 'server/agents/host.ts', 'core/config.ts'],
    ...['server/first_boot.ts', 'server/program.ts', 'server/operator/upgrade.ts'],
    ...['server/installation/setups.ts', 'server/installation/upgrades.ts'],
  ];

  it('knows all sources that ask who the user is', () => {
    const asking = sources.filter((file) => /\bgete?uid\b/.test(readSource(file)));
    expect(asking.length).toBeGreaterThan(10);
    const strange = asking.filter((file) => !USER_ROOMS.some((room) => isIn(file, room)) && !AT_START.includes(file));
    expect(strange).toEqual([]);
    for (const room of [...USER_ROOMS, ...AT_START])
      expect([room, sources.some((file) => isIn(file, room))]).toEqual([room, true]);
  });

  it('takes each test that asks it', () => {
    const asking = everyRun().filter(
      (file) => /\bgete?uid\b/.test(readSource(file)) && !/^test\/(engines|contract|suites)\//.test(file),
    );
    expect(asking.filter((file) => !differsByUser(file))).toEqual([]);
  });
});

const hasGit = Boolean(process.env.CI) || spawnSync('git', ['--version']).status === 0;

(hasGit ? describe : describe.skip)('what git knows (needs git)', () => {
  let directory: string;
  beforeEach(() => void (directory = mkdtempSync(path.join(tmpdir(), 'landing-'))));
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  const git = (...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...args], {
      cwd: directory,
      encoding: 'utf8',
    }).trim();
  const commit = (count = 1): string => {
    for (let number = 0; number < count; number += 1) git('commit', '--quiet', '--allow-empty', '--message=Change');
    return git('rev-parse', 'HEAD');
  };
  const select = (word: string, env: Record<string, string> = {}, cwd = directory): { out: string; err: string } => {
    const hook = path.join(ROOT, 'test/support/runner/typescript.js');
    const program = path.join(ROOT, 'test/support/runner/selection.ts');
    const { CI_BASE: _base, TEST_QUARTER: _quarter, ...usual } = process.env;
    const words = ['--require', hook, program, word];
    const ran = spawnSync(process.execPath, words, { cwd, env: { ...usual, ...env }, encoding: 'utf8' });
    return { out: ran.stdout.trim(), err: ran.stderr };
  };

  it('the change begins where the branch left what has landed', () => {
    git('init', '--quiet', '--initial-branch=main');
    const landed = commit(15);
    git('update-ref', 'refs/remotes/origin/main', landed);
    // Nothing but what has landed: the last commits stand for the last landing.
    expect(select('base').out).toBe(git('rev-parse', 'HEAD~12'));
    const first = commit();
    commit();
    expect(select('base').out).toBe(landed);
    expect(select('base', { CI_BASE: first.slice(0, 9) }).out).toBe(first);
    expect(select('base', { CI_BASE: 'nowhere' })).toMatchObject({ out: '', err: expect.stringContaining('nowhere') });
  });

  it('the quarter goes on with each commit', () => {
    git('init', '--quiet');
    const quarters = [2, 1, 1].map((count) => {
      commit(count);
      return select('quarter').out;
    });
    expect(quarters).toEqual(['3', '4', '1']);
    expect(select('quarter', { TEST_QUARTER: '3' }).out).toBe('3');
    expect(select('quarter', { TEST_QUARTER: '5' }).err).toContain('TEST_QUARTER is "5" (expected 1 to 4)');
    expect(select('base').out).toBe(git('rev-parse', 'HEAD~3'));
  });

  it('a shallow clone is refused, since its commits cannot be counted', () => {
    git('init', '--quiet');
    commit(3);
    const shallow = path.join(directory, 'shallow');
    git('clone', '--quiet', '--depth=1', `file://${directory}`, shallow);
    expect(select('quarter', {}, shallow).err).toContain('git fetch --unshallow');
  });
});
