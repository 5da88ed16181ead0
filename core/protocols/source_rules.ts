// Which files of a folder are sent as the source of a deployment: the same for the command line and the dashboard.

/** What the server has no use for, or makes itself. */
export const NEVER_SENT = /(?:^|\/)(?:\.git|\.svc|\.hg|\.svn|node_modules|\.DS_Store)(?:\/|$)/;
/** Settings of this computer. What is shown as an example is no secret. */
export const SECRET_FILES = /(?:^|\/)\.env(?:\.(?!example$|sample$|template$|dist$)[^/]*)?$/;
/** Files with patterns of Docker, the first that is there counts. */
export const DOCKER_RULES = ['Dockerfile.dockerignore', '.dockerignore'];
/** Docker reads them whatever .dockerignore says. */
export const DOCKER_READS = /(?:^|\/)(?:\.dockerignore|[^/]*Dockerfile[^/]*)$/;

/** Patterns of one file, such as `Ignore` of the package ignore. */
interface Patterns {
  test(name: string): { ignored: boolean; unignored: boolean };
}

type Verdict = 'out' | 'in' | undefined;

/**
 * What files of patterns say of a path, as Git reads them: the deepest one that has a rule for it decides.
 * @param name folders have a slash at their end
 * @param patternsIn those of a folder, which has a slash at its end; the empty one is the top
 */
export function verdictOf(name: string, patternsIn: (base: string) => Patterns | undefined): Verdict {
  let verdict: Verdict;
  for (const base of ['', ...foldersOf(name)]) {
    if (base === name) break;
    const { ignored, unignored } = patternsIn(base)?.test(name.slice(base.length)) ?? {};
    if (ignored || unignored) verdict = ignored ? 'out' : 'in';
  }
  return verdict;
}

/** `a/` and `a/b/` of `a/b/c`. */
export function foldersOf(name: string): string[] {
  return [...name.matchAll(/\//g)].map(({ index }) => name.slice(0, index + 1));
}
