// The test files of a run, by TEST_TIER, and what git knows of the change. As a program it prints the files of a tier,
// the quarter, as whom it runs without optional programs, or the commit that the change is compared with:
//   node --require ./test/support/runner/typescript.js test/support/runner/selection.ts turn
import { execFileSync } from 'node:child_process';
import { memoize } from '../../../core/memoize';
import {
  bareFiles,
  everyRun,
  heavyFiles,
  heavyOf,
  heavyTurn,
  isBareForUser,
  QUARTERS,
  testFiles,
  userFiles,
  type Turn,
} from './tiers';

/** Taken as the last landing where the branch that it is on has all that this checkout has. */
const COMMITS_OF_A_LANDING = 12;

export const selections: Record<string, () => readonly string[]> = {
  every: everyRun,
  bare: () => bareFiles(quarterOfRun(), changeOfRun().files),
  user: () => userFiles(quarterOfRun(), describedTurn().files, changeOfRun().files),
  heavy: heavyFiles,
  turn: () => describedTurn().files,
  of_quarter: () => heavyOf(quarterOfRun()),
  ci: () => [...new Set([...everyRun(), ...describedTurn().files])],
  all: () => testFiles,
  clients: () => inFolder('clients'),
  engines: () => inFolder('engines'),
  kubernetes: () => inFolder('kubernetes'),
  starters: () => inFolder('starters'),
  suites: () => inFolder('suites'),
};

const inFolder = (name: string): string[] => testFiles.filter((file) => file.startsWith(`test/${name}/`));

export function selectedFiles(tier: string): readonly string[] {
  const select = selections[tier];
  if (!select) throw new Error(`TEST_TIER is "${tier}" (expected one of ${Object.keys(selections).join(', ')})`);
  return select();
}

/** The commit that the change is compared with, and what it is. CI_BASE names it where the caller knows it. */
function baseOfChange(): { commit: string; name: string } {
  const given = process.env.CI_BASE;
  if (given) return { commit: git('rev-parse', '--verify', `${given}^{commit}`), name: 'CI_BASE' };
  for (const branch of ['origin/HEAD', 'origin/main']) {
    const landed = tryGit('merge-base', 'HEAD', branch);
    if (landed && landed !== git('rev-parse', 'HEAD')) return { commit: landed, name: `what ${branch} has` };
  }
  const count = Math.min(COMMITS_OF_A_LANDING, commitCount() - 1);
  return { commit: git('rev-parse', `HEAD~${count}`), name: `${count} commits before` };
}

function changedFiles(base: string): string[] {
  return git('diff', '--name-only', '--no-renames', base, 'HEAD').split('\n').filter(Boolean);
}

/** Each commit has its quarter, in turn; TEST_QUARTER names another one. */
function quarterOfRun(): number {
  const quarter = Number(process.env.TEST_QUARTER ?? (commitCount() % QUARTERS.length) + 1);
  if (!QUARTERS.includes(quarter)) throw new Error(`TEST_QUARTER is "${quarter}" (expected 1 to ${QUARTERS.length})`);
  return quarter;
}

function commitCount(): number {
  if (git('rev-parse', '--is-shallow-repository') === 'true')
    throw new Error('the quarter is chosen by the number of commits: fetch the whole history (git fetch --unshallow)');
  return Number(git('rev-list', '--count', 'HEAD'));
}

const changeOfRun = memoize(() => {
  const base = baseOfChange();
  return { ...base, files: changedFiles(base.commit) };
});

const describedTurn = memoize((): Turn => {
  const quarter = quarterOfRun();
  const { commit, name, files: changed } = changeOfRun();
  const turn = heavyTurn(quarter, changed);
  const list = (files: string[]): string => files.map((file) => `\n  ${file}`).join('') || ' none';
  process.stderr.write(
    [
      `heavy tests: quarter ${quarter} of ${QUARTERS.length}, ${turn.files.length} files`,
      `changed since ${commit.slice(0, 12)} (${name}): ${changed.length} files`,
      `touched by the change, of other quarters:${list(turn.touched)}`,
      ...(turn.left.length ? [`touched, and left to the runs that follow:${list(turn.left)}`] : []),
      '',
    ].join('\n'),
  );
  return turn;
});

function git(...args: string[]): string {
  return execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
}

function tryGit(...args: string[]): string | null {
  try {
    return git(...args);
  } catch {
    return null;
  }
}

if (require.main === module) {
  const [, , word = 'turn'] = process.argv;
  const printed: Record<string, () => string> = {
    quarter: () => String(quarterOfRun()),
    bare_as: () => (isBareForUser(quarterOfRun()) ? 'user' : 'root'),
    base: () => baseOfChange().commit,
  };
  process.stdout.write(`${(printed[word] ?? (() => selectedFiles(word).join('\n')))()}\n`);
}
