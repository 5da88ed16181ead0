// app.json, heroku.yml and Procfile: one application.
import {
  addApplication,
  addDatabase,
  processName,
  processFieldsOf,
  setDockerfile,
  setImage,
  setInstances,
  setCommand,
  setReleaseCommand,
  setRepository,
} from './application';
import { nodeEntries, itemsOf, peek, scalarAt, take, takeAll, nodeText, textsOf, type Node } from './node';
import { note, openFile, openText, pathFrom, report, type Application, type ImportRun } from './run';
import { setVariable } from './variables';
import type { Reasons } from './sweep';

export function importHeroku(run: ImportRun, path: string): void {
  const [manifest, app, procfile] = ['heroku.yml', 'app.json', 'Procfile'].map(
    (name) => pathFrom(path, name) as string,
  ) as [string, string, string];
  const json = openFile(run, app);
  const yaml = openFile(run, manifest);
  const text = openText(run, procfile);
  if (json && !isHeroku(json) && !yaml && text === undefined)
    return report(run, json, 'This app.json is not of Heroku.', null);
  const root = json && isHeroku(json) ? json : undefined;
  const place = root ?? yaml ?? { file: procfile, line: 1, path: '' };
  const application = addApplication(
    run,
    nodeText(take(root, 'name')) ?? 'app',
    root?.is === 'map' ? (peek(root, 'name') ?? place) : place,
  );
  if (application.name === 'app')
    note(run, place, 'The file names no application. It is called app.', 'Another name in platform.yaml.');
  setRepository(run, application, undefined, undefined);
  if (root) run.roots.push(root);
  if (root) readApp(run, application, root);
  if (yaml) run.roots.push(yaml);
  if (yaml) readManifest(run, application, yaml);
  if (text !== undefined) readProcfile(run, application, text, procfile);
}

/** Expo and others have an app.json, too. */
const isHeroku = (root: Node): boolean =>
  root.is === 'map' && !root.entries.has('expo') && !root.entries.has('pages') && !root.entries.has('displayName');

function readApp(run: ImportRun, application: Application, root: Node): void {
  const description = nodeText(take(root, 'description'));
  if (description) application.fields.set('description', description.replace(/\s+/g, ' ').slice(0, 500));
  const image = take(root, 'image');
  if (image && nodeText(image)?.startsWith('heroku/')) report(run, image, 'The platform has its own image of builds.');
  else if (image) setImage(run, application, nodeText(image) ?? '', image);
  for (const [type, one] of nodeEntries(take(root, 'formation'))) readFormation(run, application, type, one);
  for (const addon of itemsOf(take(root, 'addons'))) readAddon(run, application, addon);
  for (const [key, node] of nodeEntries(take(root, 'env'))) readVariable(run, application, key, node);
  const script = take(root, 'scripts', 'postdeploy');
  if (script)
    report(
      run,
      script,
      'This runs once for a new application, a release command with each deployment.',
      'svc run, or run.release_command',
    );
}

function readFormation(run: ImportRun, application: Application, type: string, node: Node): void {
  if (type === 'release') return report(run, node, 'The release command has no instances.');
  const fields = processFieldsOf(application, processName(run, type, node));
  const size = take(node, 'size');
  if (size) readSize(run, fields, size);
  setInstances(run, fields, take(node, 'quantity'));
}

const DYNOS: Readonly<Record<string, number>> = {
  ...{ eco: 512, free: 512, hobby: 512, basic: 512, 'standard-1x': 512, '1x': 512, 'standard-2x': 1_024, '2x': 1_024 },
  ...{ 'performance-m': 2_560, 'performance-l': 14_336, 'private-s': 1_024, 'private-m': 2_560 },
};

function readSize(run: ImportRun, fields: Map<string, unknown>, node: Node): void {
  const megabytes = DYNOS[(nodeText(node) ?? '').toLowerCase()];
  const types = [...run.catalog.applicationTypes].sort((a, b) => a.memory_mb - b.memory_mb);
  const found = types.find(({ memory_mb }) => megabytes !== undefined && memory_mb >= megabytes);
  if (found) fields.set('application_type', found.id);
  else report(run, node, 'There is no such size here.', 'application_type');
}

const ADDONS: readonly [RegExp, string, string][] = [
  [/postgres/, 'postgresql', 'DATABASE_URL'],
  [/redis|rediscloud|redistogo|openredis|memetria/, 'redis', 'REDIS_URL'],
  [/^(cleardb|jawsdb|jawsdb-maria|stackhero-mysql)/, 'mariadb', 'DATABASE_URL'],
];

function readAddon(run: ImportRun, application: Application, node: Node): void {
  const plan = node.is === 'map' ? take(node, 'plan') : node;
  const name = nodeText(plan) ?? '';
  const known = ADDONS.find(([pattern]) => pattern.test(name));
  if (!known) return report(run, node, 'There is nothing like this add-on in platform.yaml.', nearestOf(name));
  const [, engine, plain] = known;
  const alias = nodeText(take(node, 'as'));
  const version = nodeText(take(node, 'options', 'version'));
  const original = alias?.toLowerCase() ?? (engine === 'redis' ? 'cache' : 'main');
  const database = addDatabase(run, { original, engine, version }, node);
  if (database === null) return;
  const key = alias ? `${alias}_URL` : plain;
  const other = engine === 'mariadb' ? ` of ${name.startsWith('jaws') ? 'JAWSDB_URL' : 'CLEARDB_DATABASE_URL'}` : '';
  if (other) note(run, node, `The address is in DATABASE_URL instead${other}.`, 'DATABASE_URL');
  application.variables.set(/^[A-Za-z_]\w*$/.test(key) ? key : plain, `\${database.${database}.url}`);
}

function nearestOf(addon: string): string | null {
  if (/scheduler|cron/.test(addon)) return 'schedules';
  if (/papertrail|logentries|logdna|logtail|coralogix|sumologic/.test(addon)) return 'svc logs';
  if (/sendgrid|mailgun|postmark|sparkpost|mailtrap/.test(addon)) return 'A relay zone for mail.';
  if (/cloudinary|bucketeer|s3/.test(addon)) return 'buckets';
  return /newrelic|scout|librato|hostedgraphite/.test(addon) ? 'svc metrics' : 'A variable with an address elsewhere.';
}

/** A value, or a mapping that says how to get one. */
function readVariable(run: ImportRun, application: Application, key: string, node: Node): void {
  if (application.variables.has(key)) return takeAll(node);
  if (node.is !== 'map') return setVariable(run, application, { key, value: nodeText(node), node });
  const generator = nodeText(take(node, 'generator'));
  const value = nodeText(take(node, 'value'));
  const isOptional = nodeText(take(node, 'required')) === 'false';
  takeAll(node);
  if (generator) note(run, node, 'The platform generates no values.', `svc env set ${key}="$(openssl rand -hex 32)"`);
  if (value === null && isOptional && !generator)
    return note(run, node, 'The variable is optional and has no value.', `svc env set ${key}`);
  setVariable(run, application, { key, value: generator ? null : value, node });
}

function readManifest(run: ImportRun, application: Application, root: Node): void {
  for (const addon of itemsOf(take(root, 'setup', 'addons'))) readAddon(run, application, addon);
  for (const [key, node] of nodeEntries(take(root, 'setup', 'config')))
    setVariable(run, application, { key, value: nodeText(node), node });
  const [web, ...others] = nodeEntries(take(root, 'build', 'docker'));
  if (web) setBuild(run, application, web[1]);
  for (const [type, node] of others)
    if (nodeText(node) !== nodeText(web?.[1]))
      report(
        run,
        node,
        `One Dockerfile builds all process types, so that of ${type} is not used.`,
        'An application of its own.',
      );
  for (const [key, node] of nodeEntries(take(root, 'build', 'config')))
    setVariable(run, application, { key, value: nodeText(node), node, available_at: 'build' });
  for (const [type, node] of nodeEntries(take(root, 'run'))) readCommand(run, application, type, node);
  const release = take(root, 'release');
  take(release, 'image');
  setReleaseCommand(run, application, take(release, 'command'));
}

function setBuild(run: ImportRun, application: Application, node: Node): void {
  const path = nodeText(node) ?? '';
  const found = pathFrom('heroku.yml', path);
  if (found === null) return report(run, node, 'The path is not within the folder.', 'build.dockerfile_path');
  const folder = found.split('/').slice(0, -1).join('/');
  setDockerfile(run, application, { path: found.split('/').at(-1) ?? null, root: folder || '.' });
}

function readCommand(run: ImportRun, application: Application, type: string, node: Node): void {
  const given = node.is === 'map' ? take(node, 'command') : node;
  const command = given?.is === 'list' ? textsOf(given)?.join(' && ') : nodeText(given);
  if (node.is === 'map') take(node, 'image');
  const fields = processFieldsOf(application, processName(run, type, node));
  if (given && command) setCommand(run, fields, command, given);
}

/** The platform reads the Procfile when it builds: only what it does otherwise is said. */
function readProcfile(run: ImportRun, application: Application, text: string, path: string): void {
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '' || line.trimStart().startsWith('#')) continue;
    const place = { file: path, line: index + 1, path: `line ${index + 1}` };
    const [, type = '', command = ''] = /^([A-Za-z0-9_-]+):\s*(.+)$/.exec(line) ?? [];
    if (!command) note(run, place, 'This is no line of a Procfile.', 'type: command');
    else if (type !== 'release' && type !== 'web')
      processFieldsOf(application, processName(run, type, scalarAt(place, '')));
  }
  for (const [type, fields] of application.processes)
    if (type !== 'web' && !fields.has('instances')) fields.set('instances', 0);
}

const ABOUT = ['This describes the application to people.', 'description'] as const;

export const HEROKU_REASONS: Reasons = {
  ...{ keywords: ABOUT, logo: ABOUT, website: ABOUT, repository: ABOUT, success_url: ABOUT, $schema: ABOUT },
  buildpacks: ['The language is recognised in the source.', 'settings.build.build_command'],
  stack: ['The platform has its own image of builds.'],
  environments: ['A project here is one environment.', 'environments of platform.yaml'],
  scripts: ['Scripts run in the build or before a release.', 'run.release_command'],
  languages: ['The language is recognised in the source.', 'settings.build.build_command'],
  cron: ['Schedules are said in platform.yaml.', 'schedules'],
  dokku: ['This is of Dokku.'],
  healthchecks: ['A health check is a request to a path, or a connection to the port.', 'settings.health_check'],
};
