/** @user any */
// What the dashboard sends of a folder that is dropped into it: the same files as `svc up` sends of it without Git.
import { createRequire } from 'node:module';
import * as fs from 'node:fs';
import path from 'node:path';
import { bundlePart } from '../support/cli/part';
import dockerPatterns from '../support/cli/docker_patterns.json';
import { openSourceFolders, type SourceFolders } from '../support/cli/source_folders';
import { ROOT } from '../support/runner/repository';

interface Chosen {
  files: { name: string }[];
  secrets: { name: string }[];
  leftOut: { count: number; by: string[] };
}

let folders: SourceFolders;
let chosenOf: (list: File[]) => Promise<Chosen>;
beforeAll(() => {
  folders = openSourceFolders();
  const output = path.join(folders.directory, 'dashboard_files.cjs');
  bundlePart('source/files.ts', output, path.join(ROOT, 'clients/dashboard'));
  ({ chosenOf } = createRequire(__filename)(output) as { chosenOf: typeof chosenOf });
});
afterAll(() => folders.remove());

/** As an input for folders gives them: all files, with their paths. */
function filesOf(folder: string): File[] {
  const all = fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return all.map((entry) => {
    const place = path.join(entry.parentPath, entry.name);
    const file = new File([fs.readFileSync(place)], entry.name);
    return Object.assign(file, { webkitRelativePath: path.relative(path.dirname(folder), place) });
  });
}

const namesOf = async (folder: string): Promise<string[]> =>
  (await chosenOf(filesOf(folder))).files.map(({ name }) => name);

const TREES: Record<string, Record<string, string>> = {
  'what .gitignore names at each depth': {
    ...{ '.gitignore': 'dist/\n*.log\n!keep.log\n/only-top\n', 'sub/.gitignore': '!debug.log\n/own\n' },
    ...{ 'dist/a.js': '', 'sub/dist/b.js': '', 'a.log': '', 'keep.log': '', 'sub/debug.log': '', 'sub/own': '' },
    ...{ 'only-top': '', 'sub/only-top': '', 'sub/deep/own': '' },
  },
  'what .dockerignore names, with its exceptions': {
    '.dockerignore': '*\n!src/app\n!package.json\nsrc/app/*.test.js\n',
    ...{ 'src/app/a.js': '', 'src/app/a.test.js': '', 'src/lib/b.js': '', 'package.json': '', 'README.md': '' },
    ...{ Dockerfile: '', 'deploy/web.Dockerfile': '' },
  },
  'what .svcignore names, and takes back': {
    ...{ '.gitignore': 'dist/\nbuild\n*.map\n', '.svcignore': '!dist/\ndrafts/\n*.mp4\n!intro.mp4\n' },
    ...{ 'dist/app.js': '', 'dist/app.js.map': '', 'build/x': '', 'drafts/a': '', 'film.mp4': '', 'intro.mp4': '' },
    ...{ 'sub/.svcignore': '*.txt\n', 'sub/a.txt': '', 'sub/b': '' },
  },
  'the rules of a Dockerfile before those of the folder': {
    ...{ '.dockerignore': 'a\n', 'Dockerfile.dockerignore': 'b\n', Dockerfile: '', a: '', b: '' },
  },
  'nothing that the build makes, even if it is taken back': {
    ...{ '.svcignore': '!node_modules\n!.git\n', '.git/HEAD': '', 'node_modules/a/index.js': '' },
    ...{ 'sub/node_modules/b.js': '', 'sub/.git': '', '.svc/app': '', 'index.js': '', '.DS_Store': '' },
  },
  'no secrets, but examples': {
    ...{ '.env': 'A=1', '.env.local': '', 'web/.env.production': '', '.env.example': '', 'src/.env/x': '' },
    ...{ 'a.env': '', 'index.html': '' },
  },
};

test.each(Object.entries(TREES))('%s', async (_, tree) => {
  const folder = folders.folderOf(tree);
  expect(await namesOf(folder)).toEqual(folders.namesIn(folder));
});

test('the tables of moby/patternmatcher give the same files', async () => {
  const different: unknown[] = [];
  let count = 0;
  for (const [patterns, name, expected] of dockerPatterns as [string[], string, boolean | null][]) {
    // What cannot be the name of a file here, or is one of the files of the test.
    if (expected === null || !/^[\w.][\w./ -]*$/.test(name) || /(?:^|\/)\.{0,2}(?:\/|$)/.test(name)) continue;
    const folder = folders.folderOf({ '.dockerignore': patterns.join('\n'), 'Dockerfile.x': '', [name]: '' });
    const [sent, wanted] = [await namesOf(folder), folders.namesIn(folder)];
    if (String(sent) !== String(wanted) || sent.includes(name) === expected) different.push([patterns, name, sent]);
    count += 1;
  }
  expect(different).toEqual([]);
  expect(count).toBeGreaterThan(80);
});

test('what was left out is counted, with the files that say so; a pattern of no meaning is named', async () => {
  const folder = folders.folderOf({
    '.gitignore': 'a\n',
    '.dockerignore': 'b\n',
    a: '',
    b: '',
    '.env': '',
    'c.js': '',
  });
  const { leftOut, secrets } = await chosenOf(filesOf(folder));
  expect(leftOut).toEqual({ count: 2, by: ['.gitignore', '.dockerignore'] });
  expect(secrets.map(({ name }) => name)).toEqual(['.env']);
  const wrong = folders.folderOf({ '.dockerignore': 'a[\n', 'c.js': '' });
  await expect(chosenOf(filesOf(wrong))).rejects.toThrow('.dockerignore: "a[" is no pattern that Docker knows.');
});
