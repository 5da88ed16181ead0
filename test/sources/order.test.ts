// The order inside of rooms (docs/ARCHITECTURE.md): who stands above whom, where the lists of rooms say nothing.
import { circlesIn, importsOf, resolveImport } from '../support/runner/imports';
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
    'base reference environment dns identity projects approvals registries observers integrations applications ' +
    'domains ai email deployments object_storage cdn volumes previews databases runs bin stacks'
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

describe('parts of a room', () => {
  const ROOMS = 'contract core db drivers jobs resolvers rest server server/agents server/graphql server/operator';
  const rooms = [...ROOMS.split(' '), 'server/platform'];
  /** The folder in the room, or the file; a folder and the file of its name are one part. */
  const partOf = (room: string, file: string): string => {
    const [part = ''] = file.slice(room.length + 1).split('/');
    return part.replace(/\.ts$/, '');
  };

  it.each(rooms)('of %s go in no circle', (room) => {
    const below = rooms.filter((other) => other.startsWith(`${room}/`));
    const isIn = (file: string): boolean =>
      file.startsWith(`${room}/`) && !below.some((other) => file.startsWith(`${other}/`));
    const edges = new Map<string, string[]>();
    for (const file of files.filter(isIn)) {
      const others = neighboursOf(file).filter(isIn);
      const part = partOf(room, file);
      edges.set(part, [...(edges.get(part) ?? []), ...others.map((other) => partOf(room, other))]);
    }
    expect(edges.size).toBeGreaterThan(1);
    const folders = new Set(files.filter((file) => isIn(file) && file.slice(room.length + 1).includes('/')));
    const isFolder = (part: string): boolean => [...folders].some((file) => partOf(room, file) === part);
    // Two files that name types of each other are no knot: the circle is seen at once.
    expect(circlesIn(edges).filter((circle) => circle.length > 2 || circle.some(isFolder))).toEqual([]);
  });
});

test('rows are claimed in jobs alone: agents of a host listen, copy and measure', () => {
  const claiming = ['jobs/claim_loop.ts', 'jobs/loop.ts'];
  const users = files.filter((file) => neighboursOf(file).some((target) => claiming.includes(target)));
  expect(users).toContain('jobs/observers/check_loop.ts');
  expect(users.filter((file) => !/^(jobs|test|tools)\//.test(file))).toEqual(['server/start_worker.ts']);
});

describe('files of an engine', () => {
  it('name types of each other in no circle of more than two', () => {
    const edges = new Map(
      // The parts of the ingress share the state that one of them holds.
      files
        .filter((file) => file.startsWith('engines/') && !file.startsWith('engines/ingress/'))
        .map((file) => [file, neighboursOf(file)] as const),
    );
    expect(circlesIn(edges).filter((circle) => circle.length > 2)).toEqual([]);
  });
});

describe('engines', () => {
  const engineOf = (file: string): string | undefined => /^engines\/(\w+)\//.exec(file)?.[1];
  const isOutside = (file: string): boolean => !/^(test|tools|clients)\//.test(file);

  it.each(['cdn', 'dns', 'mail', 'object_storage', 'registry'])('%s is entered by its index.ts alone', (engine) => {
    const users = files
      .filter((file) => isOutside(file) && engineOf(file) !== engine)
      .flatMap((file) => neighboursOf(file).map((target) => [file, target] as const))
      .filter(([, target]) => engineOf(target) === engine);
    expect(users.map(([, target]) => target)).toContain(`engines/${engine}/index.ts`);
    expect(users.filter(([, target]) => target !== `engines/${engine}/index.ts`)).toEqual([]);
  });

  it('are not loaded by a probe, which is a small process', () => {
    const loaded = new Set(['server/probe.ts']);
    for (const file of loaded)
      for (const { target, typeOnly } of importsOf(file))
        if (target.startsWith('.') && !typeOnly) loaded.add(resolveImport(file, target, known));
    expect(loaded).toContain('jobs/observers/check_loop.ts');
    expect([...loaded].filter((file) => /^(engines|drivers\/(?!monitor))/.test(file))).toEqual([]);
  });
});
