/** @user any */
// The documents are true: the tour of the README runs as it stands, tables are those of the code, links lead somewhere.
import * as fs from 'node:fs';
import * as path from 'node:path';
import { loadConfig, settingsMarkdown } from '../../core/config';
import { groups } from '../../core/groups';
import { mailDirectory } from '../../core/mail/mail_directory';
import { FIRST_USER_ID, LAST_TENANT_ID, USER_IDS } from '../../drivers/runtime/sandbox/user_ids';
import { buildCore } from '../../resolvers';
import { anchorsOf } from '../support/runner/repository';
import { needs } from '../support/runner/programs';
import { startTour, type Tour } from '../support/processes/tour';

const ROOT = path.resolve(__dirname, '../..');
const read = (file: string): string => fs.readFileSync(path.join(ROOT, file), 'utf8');

describe('the tour of the README', () => {
  const { test: tour } = needs('bash', 'curl');
  let service: Tour | undefined;

  afterAll(() => service?.close());

  tour(
    'runs as it stands against what npm start starts (needs bash and curl)',
    async () => {
      service = await startTour();
      const outputs = await service.run('README.md');
      const [, me, project, volume, deployed, application, domain, mistakes, twice, graphql, activity, cleared] =
        outputs;
      expect(outputs).toHaveLength(12);
      expect(me).toContain('"kind":"personal"');
      expect(project).toContain('"resource":"volumes"');
      expect(volume).toMatch(/"status":"available"[^]*"size_gb":2/);
      expect(deployed).toMatch(
        /"value":"Hello from the tour"[^]*\nactive\nOpen http:\/\/shop-\w+\.localhost:\d+\n[^]*Hello from the tour/,
      );
      expect(application).toMatch(/GET \/ 200[^]*"mount_path":"\/data"/);
      expect(domain).toMatch(/"type":"CNAME","name":"shop\.example\.com"[^]*"type":"TXT"/);
      expect(mistakes).toMatch(/"code":"unknown_field"[^]*"code":"invalid_type"[^]*"title":"Validation failed"/);
      expect(twice).toMatch(/"name":"logs"[^]*\nidempotent-replayed: true/i);
      expect(JSON.parse(graphql as string).data.listVolumes.data).toEqual([
        { name: 'logs', size_gb: 1, status: expect.any(String), application: null },
        {
          name: 'uploads',
          size_gb: 2,
          status: 'in_use',
          application: { name: 'shop', default_hostname: expect.stringMatching(/^shop-/) },
        },
      ]);
      expect(activity).toContain('"action":"volume.created"');
      expect(cleared).toContain('HTTP status 204');
    },
    180_000,
  );
});

describe('the documents', () => {
  const files = documents();

  it('have no link to a file or heading that is not there', () => {
    const broken = files.flatMap((file) =>
      linksOf(file)
        .filter((link) => !leadsSomewhere(file, link))
        .map((link) => `${file}: ${link}`),
    );
    expect(broken).toEqual([]);
  });

  it('name only files that exist', () => {
    const folders = fs
      .readdirSync(ROOT, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
    const named = new RegExp(`\`((?:${folders.join('|')})/[\\w./-]*)\``, 'g');
    const missing = files.flatMap((file) =>
      [...read(file).matchAll(named)]
        .map(([, name]) => name as string)
        .filter((name) => !isMadeUp(name) && !fs.existsSync(path.join(ROOT, name)))
        .map((name) => `${file}: ${name}`),
    );
    expect(missing).toEqual([]);
  });

  it('show the settings as the program has them (UPDATE_DOCS=1 writes the table)', () => {
    const page = 'docs/SETTINGS.md';
    const table = /(?<=<!-- settings -->\n)[^]*?(?=<!-- \/settings -->)/;
    if (process.env.UPDATE_DOCS)
      fs.writeFileSync(
        path.join(ROOT, page),
        read(page).replace(table, () => settingsMarkdown()),
      );
    expect(table.exec(read(page))?.[0]).toBe(settingsMarkdown());
  });

  it('count the operations as they are', () => {
    const { operations: served } = buildCore().table;
    const operations = served.filter(({ extension }) => !extension);
    const all = groups.reduce((sum, group) => sum + group.operations, 0);
    expect(read('README.md')).toContain(`${operations.length} of the ${all} operations`);
    expect(read('README.md')).toContain(`and ${served.length - operations.length} more`);
  });

  it('list each directory of the data directory for the backup', () => {
    const dataDir = '/srv/data';
    const config = loadConfig({ PLATFORM_DATA_DIR: dataDir });
    const inside = Object.values({ ...config, mailDir: mailDirectory(config) }).filter(
      (value): value is string => typeof value === 'string' && value.startsWith(`${dataDir}/`),
    );
    expect(inside.length).toBeGreaterThan(6);
    const page = read('docs/OPERATIONS.md');
    const missing = inside.map((directory) => path.relative(dataDir, directory));
    expect(missing.filter((name) => !page.includes(`| \`${name}/\` |`))).toEqual([]);
  });

  it('filter all user ids that programs of tenants can have', () => {
    const tenants = `${FIRST_USER_ID}-${FIRST_USER_ID + USER_IDS - 1}`;
    const ranges = `${LAST_TENANT_ID + 1}-${2 ** 31 - 1}`;
    const rules = read('docs/SECURITY.md').match(/meta skuid .*/g) ?? [];
    expect(rules.length).toBeGreaterThan(1);
    expect(rules.filter((rule) => !rule.startsWith(`meta skuid { ${tenants}, ${ranges} } `))).toEqual([]);
  });

  it('name only npm scripts that exist', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const named = files.flatMap((file) =>
      [...read(file).matchAll(/npm run ([a-z-]+(?::[a-z_-]+)*)/g)].map(([, name]) => name as string),
    );
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });
});

function documents(): string[] {
  const pages = fs
    .readdirSync(path.join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((file) => path.join('docs', file));
  return ['README.md', 'STYLE.md', 'CHANGELOG.md', 'CONTRIBUTING.md', ...pages].filter(
    (file) => file.endsWith('.md') && fs.existsSync(path.join(ROOT, file)),
  );
}

/** Of the example in docs/adding-a-kind.md, or made by a build or an installation. */
function isMadeUp(name: string): boolean {
  return /bookmark|NNNN|^dist\/|^node_modules\/|^tools\/node_modules/.test(name);
}

function linksOf(file: string): string[] {
  const links = [...read(file).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link as string);
  return links.filter((link) => !/^https?:/.test(link));
}

function leadsSomewhere(file: string, link: string): boolean {
  const [place = '', heading] = link.split('#');
  const target = place ? path.join(path.dirname(file), place) : file;
  if (!fs.existsSync(path.join(ROOT, target))) return false;
  return heading === undefined || anchorsOf(target).includes(heading);
}
