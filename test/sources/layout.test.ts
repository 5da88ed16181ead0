// The house rules of docs/ARCHITECTURE.md, for what a linter does not see.
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Kind, parse, print } from 'graphql';
import { groups } from '../../core/groups';
import { allKinds } from '../../models/base/kinds';
import { circlesIn, importCircles, importsOf, resolveImport } from '../support/runner/imports';
import { isForeign, readSource as read, repositoryFiles, ROOT } from '../support/runner/repository';

const load = createRequire(__filename);
const files = repositoryFiles();
const sources = files.filter((file) => /\.(tsx?|mjs|js)$/.test(file) && !isForeign(file));

const PLATFORM = ['core', 'contract', 'db', 'models', 'engines', 'drivers', 'jobs', 'resolvers', 'rest'];

/** Room -> rooms whose files it may import. A room below another one is not a part of it. */
const MAY_IMPORT: Record<string, string[]> = {
  core: [],
  contract: ['core'],
  db: ['core'],
  engines: ['core'],
  drivers: ['core', 'engines'],
  models: ['core', 'db'],
  jobs: ['core', 'db', 'models', 'engines', 'drivers'],
  resolvers: ['core', 'contract', 'models'],
  rest: ['core', 'contract'],
  migrations: [],
  'server/platform': PLATFORM,
  'server/graphql': ['core', 'contract', 'rest', 'server/platform'],
  'server/agents': ['core', 'db', 'models', 'engines', 'drivers', 'jobs', 'server/platform'],
  server: [...PLATFORM, 'server/platform', 'server/graphql', 'server/agents'],
  'server/operator': [...PLATFORM, 'server/platform', 'server'],
  // Packages of their own, which know the server by its API. What they share with it, or with each other, is of core.
  clients: ['core'],
};

/** Inside of `engines`: engine -> the others that it may import. */
const ENGINES: Record<string, string[]> = {
  ingress: ['cdn'],
  dns: [],
  object_storage: [],
  registry: [],
  mail: [],
  cdn: [],
};

/** Packages that only some rooms know. */
const PACKAGES: Record<string, string[]> = {
  express: ['server', 'server/graphql'],
  '@apollo/server': ['server/graphql'],
  'sofa-api': ['rest'],
  'graphql-jit': ['rest', 'server/graphql'],
  'find-my-way': ['rest'],
  knex: ['db', 'migrations'],
  objection: ['db', 'models'],
  // The driver of PostgreSQL servers speaks to them.
  pg: ['db', 'server/platform', 'drivers'],
  graphql: ['core', 'contract', 'resolvers', 'rest', 'server/graphql', 'server/platform'],
  pino: ['core'],
  'prom-client': ['server'],
  'acme-client': ['drivers'],
  nodemailer: ['engines', 'drivers'],
};

const isRoom = (room: string): boolean => room in MAY_IMPORT;
/** The longest room that the file lies below, else the folder at the top. */
const roomOf = (file: string): string => {
  const [top, second] = file.split('/') as [string, string?];
  return isRoom(`${top}/${second}`) ? `${top}/${second}` : top;
};
const rooms = sources.filter((file) => isRoom(roomOf(file)) && /\.tsx?$/.test(file));
const inRoom = (room: string): string[] => rooms.filter((file) => roomOf(file) === room);
const known = new Set(files);

/** Files of the repository that a file imports, for whatever reason. */
function neighboursOf(file: string): string[] {
  return importsOf(file)
    .filter(({ target }) => target.startsWith('.'))
    .map(({ target }) => resolveImport(file, target, known));
}

describe('imports', () => {
  test.each(Object.keys(MAY_IMPORT))('%s knows only what is below it', (room) => {
    expect(inRoom(room)).not.toEqual([]);
    const allowed = [room, ...(MAY_IMPORT[room] as string[])];
    const wrong = inRoom(room).flatMap((file) =>
      neighboursOf(file)
        .filter((target) => !allowed.includes(roomOf(target)) && !/^(schema\/types\.ts|package\.json)$/.test(target))
        .map((target) => `${file} imports ${target}`),
    );
    expect(wrong).toEqual([]);
  });

  test.each(Object.entries(PACKAGES))('%s is known only to %j', (name, allowed) => {
    const users = rooms.filter((file) =>
      importsOf(file).some(({ target }) => target === name || target.startsWith(`${name}/`)),
    );
    expect(users).not.toEqual([]);
    expect(users.filter((file) => !allowed.includes(roomOf(file)))).toEqual([]);
  });

  test('a client knows packages of its own alone', () => {
    const wrong = inRoom('clients').flatMap((file) => {
      const [, name = ''] = file.split('/');
      const { devDependencies, dependencies } = JSON.parse(read(`clients/${name}/package.json`)) as {
        devDependencies: Record<string, string>;
        dependencies?: Record<string, string>;
      };
      const own = Object.keys({ ...dependencies, ...devDependencies });
      return importsOf(file)
        .map(({ target }) => target)
        .filter((target) => !/^(\.|node:|#)/.test(target) && !own.some((one) => `${target}/`.startsWith(`${one}/`)))
        .map((target) => `${file} imports ${target}`);
    });
    expect(wrong).toEqual([]);
  });

  it.each(Object.keys(ENGINES))('the engine %s knows the others that it is made with', (engine) => {
    const engineOf = (file: string): string | undefined => /^engines\/(\w+)\//.exec(file)?.[1];
    const wrong = inRoom('engines')
      .filter((file) => engineOf(file) === engine)
      .flatMap((file) => neighboursOf(file).map((target) => [file, engineOf(target) ?? engine] as const))
      .filter(([, other]) => other !== engine && !ENGINES[engine]?.includes(other));
    expect(wrong).toEqual([]);
    expect(files).toContain(`engines/${engine}/README.md`);
  });

  it('go in no circle between rooms', () => {
    const below = (room: string): string[] => [...new Set(inRoom(room).flatMap(neighboursOf).map(roomOf))];
    const edges = Object.keys(MAY_IMPORT).map((room) => [room, below(room).filter(isRoom)] as const);
    // A room knows itself, which is no circle of rooms.
    expect(circlesIn(new Map(edges))).toEqual([]);
    expect(edges.flatMap(([, others]) => others)).toContain('core');
  });

  it('go in no circle inside a room', () => {
    expect(importCircles(sources.filter((file) => /\.tsx?$/.test(file)))).toEqual([]);
  });

  it('are found with their circles', () => {
    expect(importsOf('test/sources/layout.test.ts')).toContainEqual({
      target: '../support/runner/imports',
      typeOnly: false,
      lazy: false,
    });
    const edges = { a: ['b'], b: ['c'], c: ['b', 'd'], d: ['e'], e: ['f'], f: ['d'] };
    expect(circlesIn(new Map(Object.entries(edges)))).toEqual([
      ['d', 'e', 'f'],
      ['b', 'c'],
    ]);
  });

  it('of an interface of a driver are types alone: drivers/X/open.ts chooses the implementation', () => {
    const interfaces = sources.filter(
      (file) => /^drivers\/\w+\.ts$/.test(file) && sources.some((other) => other.startsWith(file.replace('.ts', '/'))),
    );
    expect(interfaces).toEqual(expect.arrayContaining(['drivers/runtime.ts', 'drivers/volume.ts']));
    const wrong = interfaces.flatMap((file) =>
      importsOf(file)
        .filter(({ typeOnly }) => !typeOnly)
        .map(({ target }) => `${file} imports ${target}`),
    );
    expect(wrong).toEqual([]);
    expect(files).toContain('drivers/volume/open.ts');
  });

  it('take the schema types only as types', () => {
    const wrong = sources.filter((file) => /import \{[^}]*\} from '[./]*schema\/types'/.test(read(file)));
    expect(wrong).toEqual([]);
    expect(importsOf('schema/types.ts')).toEqual([]);
  });

  it('resolvers write no SQL', () => {
    const wrong = files.filter(
      (file) =>
        file.startsWith('resolvers/') &&
        /\b(select|insert into|delete from)\b[^;]*\b(from|values|where)\b/i.test(
          read(file).replace(/\/\/.*|"[^"]*"/g, ''),
        ),
    );
    expect(wrong).toEqual([]);
  });
});

describe('stems', () => {
  /** Files of a layer and of its groups, by their stem. */
  const stems = (layer: string, ending: string): Map<string, string> =>
    new Map(
      files
        .filter(
          (file) =>
            new RegExp(`^${layer}/(?:\\w+/)?[a-z]\\w*${ending.replace('.', '\\.')}$`).test(file) &&
            !/\/(index|types)\.ts$/.test(file),
        )
        .map((file) => [path.basename(file, ending), file]),
    );

  const schemas = stems('schema', '.graphql');
  const models = stems('models', '.ts');
  const jobs = stems('jobs', '.ts');
  const groupFolder = (group: string): string => group.toLowerCase().replaceAll(' ', '_');
  const groupFolders = groups.map(({ name }) => groupFolder(name));

  it('each schema file has its resolver, and the other way round', () => {
    expect([...schemas.keys()]).toContain('volume');
    expect([...schemas.keys()].sort()).toEqual([...stems('resolvers', '.ts').keys()].sort());
  });

  it('the folders of a layer are groups, and a stem has the same group in each', () => {
    const layers = ['schema', 'resolvers', 'models', 'jobs'];
    const folders = new Set(
      files
        .map((file) => file.split('/'))
        .flatMap(([layer = '', folder, ...rest]) =>
          layers.includes(layer) && rest.length > 0 ? [folder as string] : [],
        ),
    );
    expect([...folders].filter((folder) => folder !== 'base' && !groupFolders.includes(folder))).toEqual([]);
    const groupsOf = new Map<string, Set<string>>();
    for (const [stem, file] of [...schemas, ...stems('resolvers', '.ts'), ...models, ...jobs]) {
      const [, group, ...rest] = file.split('/');
      if (rest.length > 0) groupsOf.set(stem, (groupsOf.get(stem) ?? new Set()).add(group as string));
    }
    expect([...groupsOf].filter(([, found]) => found.size > 1).map(([stem]) => stem)).toEqual([]);
  });

  it.each(allKinds().map(({ kind }) => kind))('%s has its model in the file of its name', (kind) => {
    const exported = Object.values(
      load(path.resolve(ROOT, models.get(kind) ?? kind)) as Record<string, { kind?: string }>,
    );
    expect(exported.map((value) => value?.kind)).toContain(kind);
  });

  // The tasks came first, and processes of the version before would take other rows of their table for tasks.
  const OTHER_TABLES: Record<string, string> = { periodic_task: 'schedules', schedule: 'cron_schedules' };

  it.each([...jobs].filter(([, file]) => /export const job\b/.test(read(file))))(
    'the job of %s works on the table of its model',
    (stem, file) => {
      const { job } = load(path.resolve(ROOT, file)) as { job: { table: string } };
      expect([...models.keys()]).toContain(stem);
      expect(allKinds().find(({ kind }) => kind === stem)?.table ?? job.table).toBe(job.table);
      expect([`${stem}s`, `${stem}es`, stem.replace(/y$/, 'ies'), OTHER_TABLES[stem]]).toContain(job.table);
    },
  );

  // The account is tested by what is done with it: logging in, sessions, two-factor.
  it.each([...schemas].filter(([stem]) => stem !== 'account'))(
    'the schema file of %s has a test that calls it',
    (stem, file) => {
      const named = new RegExp(`^test/${file.split('/')[1]}/${stem}(_\\w+)?\\.test\\.ts$`);
      const tests = files.filter((one) => named.test(one));
      const text = tests.map(read).join('\n');
      expect(operationNames(file).filter((name) => new RegExp(`\\b${name}\\b`).test(text))).not.toEqual([]);
    },
  );

  it('migrations are numbered one by one', () => {
    const numbers = files
      .filter((file) => /^migrations\/[^/]+$/.test(file))
      .map((file) => Number(path.basename(file).slice(0, 4)));
    expect(numbers.sort((a, b) => a - b)).toEqual(numbers.map((_, index) => index + 1));
  });

  it('migrations do on a new installation what they did on the old ones: they import nothing that changes', () => {
    const all = files.filter((file) => file.startsWith('migrations/')).sort();
    const imported = new Set(all.flatMap((file) => importsOf(file).map(({ target }) => target)));
    const outside = [...imported].filter((target) => !/^(knex|node:\w+|\.\/frozen\/\w+)$/.test(target));
    expect(outside).toEqual([]);
    const frozen = all.filter((file) => file.startsWith('migrations/frozen/')).map(read);
    const withoutComments = frozen.join('').replace(/\/\*[^]*?\*\/|^ *\/\/.*$/gm, '');
    const digest = createHash('sha256').update(withoutComments).digest('hex');
    expect(digest).toBe('8306859403940ea7c0b9e104bd8b180e0a9460904974ea3f5ff09311a3cd0c31');
  });

  // Engines of one kind are made of the same verbs; the object store has those of S3 in its catalog and its endpoint.
  const shapes = [
    ['database', /^drivers\/(database\/(postgresql|mariadb|redis)|hosted_server)\//],
    ['S3', /^(engines\/object_storage|models\/object_storage\/bucket_object)\//],
  ] as const;

  it('no two exported functions share a name, verbs of one shape aside', () => {
    const shapeOf = (file: string): string => shapes.find(([, pattern]) => pattern.test(file))?.[0] ?? file;
    const places = new Map<string, Set<string>>();
    for (const file of rooms.filter((one) => !['migrations', 'clients'].includes(roomOf(one))))
      for (const [, name = ''] of read(file).matchAll(
        /^export (?:async )?(?:function\*? |const (?=\w+ = (?:async )?\())(\w+)/gm,
      ))
        places.set(name, (places.get(name) ?? new Set()).add(shapeOf(file)));
    expect(places.size).toBeGreaterThan(1000);
    const shared = [...places].filter(([, found]) => found.size > 1);
    expect(shared.map(([name, found]) => [name, ...found])).toEqual([]);
  });

  it('no room has a name that says nothing', () => {
    expect(files.filter((file) => /(^|\/)(utils?|helpers?|common|lib|services|misc)(\/|\.)/.test(file))).toEqual([]);
  });
});

/** Names of the root fields of a schema file, and the last words of their paths. */
function operationNames(file: string): string[] {
  return parse(read(file)).definitions.flatMap((definition) => {
    if (definition.kind !== Kind.OBJECT_TYPE_EXTENSION && definition.kind !== Kind.OBJECT_TYPE_DEFINITION) return [];
    if (!/^(Query|Mutation)$/.test(definition.name.value)) return [];
    return (definition.fields ?? []).flatMap((field) => [
      field.name.value,
      ...[...print(field).matchAll(/path: "[^"]*\/(\w+)(?:\/\{[^"]*)?"/g)].map(([, word]) => word as string),
    ]);
  });
}
