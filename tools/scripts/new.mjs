// Writes the files of a new kind, in the folders of its group, and a failing test. No other file is edited: folders are
// the registries.
//   npm run new -- <kind> [--parent <kind>] [--loop] [--driver] [--group "<group>"] [--prefix <id prefix>]
//     [--plural <table>]
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';

const ROOT = resolve(import.meta.dirname, '../..');
const USAGE =
  'usage: npm run new -- <kind> [--parent <kind>] [--loop] [--driver] [--group "<group>"] [--prefix <id prefix>] ' +
  '[--plural <table>]';

main();

function main() {
  const { kind, values } = readArguments();
  requireName(kind);
  const kinds = values.plural ?? pluralOf(kind);
  const number = nextMigration();
  // What a driver makes is brought about by the loop.
  const hasLoop = values.loop || values.driver;
  requireNew(kind, kinds);
  const own =
    values.parent === undefined ? ownWords(kind, values.group) : childWords(kind, kinds, values);
  const folder = folderOf(own.group);
  const files = {
    [`schema/${folder}/${kind}.graphql`]: 'schema.graphql',
    [`resolvers/${folder}/${kind}.ts`]: 'resolver.ts',
    [`models/${folder}/${kind}.ts`]: 'model.ts',
    [`migrations/${number}_${kinds}.ts`]: 'migration.ts',
    [`test/${folder}/${kind}.test.ts`]: 'test.ts',
    ...(hasLoop && { [`jobs/${folder}/${kind}.ts`]: 'job.ts' }),
    ...(values.driver && {
      [`drivers/${kind}.ts`]: 'driver.ts',
      [`test/engines/${folder}/${kind}_conformance.test.ts`]: 'conformance.test.ts',
    }),
  };
  const words = {
    kind,
    kinds,
    folder,
    Kind: pascal(kind),
    Kinds: pascal(kinds),
    word: kind.replaceAll('_', ' '),
    words: kinds.replaceAll('_', ' '),
    prefix: prefixOf(kind, values.prefix),
    migration: `${number}_${kinds}`,
    kinds_key: camel(kinds),
    alive: hasLoop ? ' where deleted_at is null' : '',
    with_worker: hasLoop ? '{ worker: true }' : '',
    ...(hasLoop && { loop: kind }),
    ...(values.driver && { driver: kind }),
    ...own,
  };
  for (const [file, template] of Object.entries(files)) {
    mkdirSync(join(ROOT, dirname(file)), { recursive: true });
    writeFileSync(join(ROOT, file), fill(read(`tools/scripts/new/${template}.txt`), words), { flag: 'wx' });
    console.log(`wrote ${file}`);
  }
  generateTypes();
  console.log(`Next: npx jest test/${folder}/${kind}.test.ts says what to fill in. docs/adding-a-kind.md shows how.`);
}

function readArguments() {
  const text = { type: 'string' };
  const flag = { type: 'boolean' };
  try {
    const { positionals, values } = parseArgs({
      allowPositionals: true,
      options: { parent: text, loop: flag, driver: flag, group: text, prefix: text, plural: text },
    });
    if (positionals.length !== 1) fail(USAGE);
    return { kind: positionals[0], values };
  } catch (error) {
    fail(`${error.message}\n${USAGE}`);
  }
}

function requireName(kind) {
  if (!/^(?=.{3,40}$)[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/.test(kind))
    fail(`"${kind}" is no name for a kind: take lower_snake_case in the singular, such as dns_zone`);
}

/** The stem is the kind's name in every layer, so one file of that name means that it is taken. */
function requireNew(kind, kinds) {
  if (!/^[a-z][a-z0-9_]*$/.test(kinds) || kinds === kind)
    fail(`"${kinds}" is no name for the table: give --plural in lower_snake_case`);
  const layers = ['schema', 'resolvers', 'models', 'jobs', 'drivers', 'test'];
  const taken = layers
    .flatMap((layer) => list(layer, /\.(graphql|ts)$/))
    .find((file) => basename(file).split('.')[0] === kind);
  if (taken) fail(`the kind ${kind} exists already: ${taken}`);
  const place = new RegExp(`"/v2/${kinds}["/]|^(?:type|enum|input) ${pascal(kind)}\\b`, 'm');
  const file = list('schema', /\.graphql$/).find((name) => place.test(read(name)));
  if (file) fail(`${file} has the path /v2/${kinds} or the type ${pascal(kind)} already`);
  const table = new RegExp(`['"\`]${kinds}['"\`]`);
  const migration = list('migrations', /\.ts$/).find((name) => table.test(read(name)));
  if (migration) fail(`${migration} has the table ${kinds} already: give --plural`);
}

function ownWords(kind, group) {
  return { owner: 'project', owner_id: 'project_id', group: groupOf(kind, group) };
}

/** Of a kind below another: what its templates say of the parent, read from the parent's own files. */
function childWords(kind, kinds, { parent, group }) {
  requireName(parent);
  const model = list('models', /\.ts$/).find((file) => basename(file) === `${parent}.ts`);
  if (!model) fail(`the parent ${parent} is no kind: there is no models/<group>/${parent}.ts`);
  const code = read(model);
  const [, Parent] = /export class (\w+) extends Resource/.exec(code) ?? fail(`${model} exports no kind`);
  const [, parents] = /readonly table = '(\w+)'/.exec(code) ?? fail(`${model} names no table`);
  const [, parent_prefix] = /readonly idPrefix = '(\w+)'/.exec(code) ?? fail(`${model} names no prefix of ids`);
  const schema = model.replace(/^models(.*)ts$/, 'schema$1graphql');
  const found = existsSync(join(ROOT, schema)) && /"(\/v2\/[^"{}]+)\/\{id\}"/.exec(read(schema));
  if (!found) fail(`${parent} can be no parent: ${schema} has no path of the form /v2/…/{id}`);
  const [, parent_place] = found;
  const inParent = (name) => (name.startsWith(`${parent}_`) ? name.slice(parent.length + 1) : name);
  const [short, segment] = [inParent(kind), inParent(kinds)];
  const parent_word = parent.replaceAll('_', ' ');
  const place = `${parent_place}/{id}/${segment}`;
  return {
    parent_folder: basename(dirname(model)),
    ...{ parent, Parent, parents, parent_prefix, parent_place, parent_word, short, segment, place },
    owner: parent_word,
    owner_id: `${parent}_id`,
    item: `${place}/{${camel(short)}Id:${short}_id}`,
    ids: `"Id of the ${parent_word}." id: ID!, "Id of the ${kind.replaceAll('_', ' ')}." ${short}_id: ID!`,
    group: groupOf(kind, group ?? groupNamed(basename(dirname(schema)))),
  };
}

function prefixOf(kind, given) {
  const prefix = given ?? kind.replaceAll('_', '').slice(0, 3);
  if (!/^[a-z]{2,4}$/.test(prefix)) fail(`"${prefix}" is no prefix for ids: give --prefix with two to four letters`);
  const taken = new RegExp(`idPrefix = '${prefix}'|mintId\\('${prefix}'\\)`);
  const owner = ['models', 'core', 'server']
    .flatMap((folder) => list(folder, /\.ts$/))
    .find((file) => taken.test(read(file)));
  if (owner) fail(`the prefix ${prefix} is taken by ${owner}: give --prefix with two to four letters`);
  return prefix;
}

/** Given, or the one group that shares a word with the kind. */
function groupOf(kind, given) {
  const groups = groupNames();
  if (given !== undefined && !groups.includes(given))
    fail(`"${given}" is no group of core/groups.ts: ${groups.join(', ')}`);
  if (given !== undefined) return given;
  const words = new Set(kind.split('_').flatMap((word) => [word, pluralOf(word)]));
  const fitting = groups.filter((name) =>
    name
      .toLowerCase()
      .split(' ')
      .some((word) => words.has(word)),
  );
  if (fitting.length !== 1) fail(`give --group, one of: ${groups.join(', ')}`);
  return fitting[0];
}

function nextMigration() {
  const numbers = list('migrations', /^\d{4}_\w+\.ts$/).map((file) => Number(basename(file).slice(0, 4)));
  return String(Math.max(0, ...numbers) + 1).padStart(4, '0');
}

function generateTypes() {
  const generator = join(ROOT, 'tools/scripts/codegen.mjs');
  const { status } = spawnSync(process.execPath, [generator], { cwd: ROOT, stdio: 'inherit' });
  if (status !== 0) fail('npm run codegen failed');
  console.log('wrote schema/types.ts and resolvers/types.ts');
}

/**
 * `{{word}}` is replaced; lines from `{{#word}}` to `{{/word}}` stay where the word is known, from `{{^word}}` where
 * it is not.
 */
function fill(template, words) {
  const choose = (text) =>
    text.replace(/^\{\{([#^])(\w+)\}\}\n([^]*?)^\{\{\/\2\}\}\n/gm, (_, sign, name, lines) =>
      (sign === '#') === name in words ? choose(lines) : '',
    );
  return choose(template).replace(
    /\{\{(\w+)\}\}/g,
    (_, name) => words[name] ?? fail(`the template has an unknown word ${name}`),
  );
}

function pluralOf(word) {
  if (/[^aeiou]y$/.test(word)) return `${word.slice(0, -1)}ies`;
  return /(?:s|x|z|ch|sh)$/.test(word) ? `${word}es` : `${word}s`;
}

function pascal(name) {
  return name
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

function camel(name) {
  return pascal(name).replace(/^./, (letter) => letter.toLowerCase());
}

/** Paths of the files below a layer whose names match. */
function list(layer, pattern) {
  return readdirSync(join(ROOT, layer), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && pattern.test(entry.name))
    .map(({ parentPath, name }) => relative(ROOT, join(parentPath, name)))
    .sort();
}

function groupNamed(folder) {
  return groupNames().find((name) => folderOf(name) === folder);
}

function groupNames() {
  return [...read('core/groups.ts').matchAll(/\{\s*name: '([^']+)'/g)].map(([, name]) => name);
}

/** Of a group in every layer: `Object storage` is object_storage. */
function folderOf(group) {
  return group.toLowerCase().replaceAll(' ', '_');
}

function read(file) {
  return readFileSync(join(ROOT, file), 'utf8');
}

function fail(message) {
  console.error(`new: ${message}`);
  process.exit(1);
}
