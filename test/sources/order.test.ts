// The order inside of rooms (docs/ARCHITECTURE.md): who stands above whom, where the lists of rooms say nothing.
import { importsOf, resolveImport } from '../support/runner/imports';
import { readSource, repositoryFiles } from '../support/runner/repository';

const files = repositoryFiles().filter((file) => file.endsWith('.ts'));
const known = new Set(files);

/** Files of the repository that a file imports, types included. */
function neighboursOf(file: string): string[] {
  return importsOf(file)
    .filter(({ target }) => target.startsWith('.'))
    .map(({ target }) => resolveImport(file, target, known));
}

describe('groups of models', () => {
  /** A group may import those before it. */
  const GROUPS = (
    'base reference environment dns identity projects registries observers integrations applications domains ai ' +
    'email deployments object_storage cdn volumes previews databases runs'
  ).split(' ');
  // A process type and its application are changed by the same verbs.
  const PARTS: Record<string, string> = { processes: 'applications' };
  const groupOf = (file: string): string | undefined => {
    const group = /^models\/(\w+)\//.exec(file)?.[1];
    return group && (PARTS[group] ?? group);
  };
  const members = files.filter((file) => groupOf(file) !== undefined);

  it('are all in the order', () => {
    expect([...new Set(members.map(groupOf))].sort()).toEqual([...GROUPS].sort());
    expect(readSource('docs/ARCHITECTURE.md').replace(/\s+/g, ' ')).toContain(GROUPS.join(' '));
  });

  it.each(GROUPS)('%s knows those before it alone', (group) => {
    const wrong = members
      .filter((file) => groupOf(file) === group)
      .flatMap((file) => neighboursOf(file).map((target) => [file, target] as const))
      .filter(
        ([, target]) => target.startsWith('models/') && GROUPS.indexOf(groupOf(target) ?? '') > GROUPS.indexOf(group),
      )
      .map(([file, target]) => `${file} imports ${target}`);
    expect(wrong).toEqual([]);
  });
});
