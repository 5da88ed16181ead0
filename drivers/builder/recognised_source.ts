// Sources that the platform does not build, by what people recognise them by: generators of sites, and folders that are
// applications of their own.
import path from 'node:path';
import { findGoWorkspace, modulesBelow } from './go/go_module';
import { listNames } from './message_text';
import { SEARCHED_ENTRIES_MAX, type SourceFiles } from './source_files';

interface Generator {
  title: string;
  /** Files that it alone has, and for a shared name what the file contains. */
  files: [name: string, content?: RegExp][];
  command: string;
  output: string;
}

const generators: Generator[] = [
  ...['hugo.toml', 'hugo.yaml', 'hugo.json', 'config/_default/hugo.toml', 'config/_default/config.toml'].map((name) =>
    hugo(name),
  ),
  {
    title: 'Zola',
    files: [['config.toml', /^[ \t]*(?:compile_sass|build_search_index|generate_feeds?)\b|^[ \t]*\[markdown\]/m]],
    command: 'zola build',
    output: 'public',
  },
  ...[
    ['config.toml', /^[ \t]*baseURL\s*=/im] as [string, RegExp],
    ['config.yaml', /^baseURL\s*:/im] as [string, RegExp],
    ['config.yml', /^baseURL\s*:/im] as [string, RegExp],
  ].map(([name, content]) => hugo(name, content)),
  ...['archetypes/default.md', '.hugo_build.lock'].map((name) => hugo(name)),
  { title: 'Jekyll', files: [['_config.yml'], ['_config.yaml']], command: 'jekyll build', output: '_site' },
  { title: 'MkDocs', files: [['mkdocs.yml'], ['mkdocs.yaml']], command: 'mkdocs build', output: 'site' },
  {
    title: 'Eleventy',
    files: ['.eleventy.js', 'eleventy.config.js', 'eleventy.config.mjs', 'eleventy.config.cjs'].map((name) => [name]),
    command: 'npx @11ty/eleventy',
    output: '_site',
  },
  {
    title: 'Sphinx',
    files: ['conf.py', 'docs/conf.py', 'docs/source/conf.py', 'source/conf.py'].map((name) => [
      name,
      /^(?:extensions|html_theme|master_doc|project)\s*=/m,
    ]),
    command: 'sphinx-build docs public',
    output: 'public',
  },
  { title: 'Pelican', files: [['pelicanconf.py']], command: 'pelican content', output: 'output' },
  { title: 'mdBook', files: [['book.toml']], command: 'mdbook build', output: 'book' },
  { title: 'Quarto', files: [['_quarto.yml']], command: 'quarto render', output: '_site' },
  {
    title: 'Antora',
    files: [['antora-playbook.yml']],
    command: 'npx antora antora-playbook.yml',
    output: 'build/site',
  },
  { title: 'Middleman', files: [['config.rb', /\bactivate\b/]], command: 'middleman build', output: 'build' },
  { title: 'Nanoc', files: [['nanoc.yaml']], command: 'nanoc', output: 'output' },
];

function hugo(name: string, content?: RegExp): Generator {
  return { title: 'Hugo', files: [content ? [name, content] : [name]], command: 'hugo', output: 'public' };
}

/** A sentence for a source of a generator of sites that no package.json builds; null for others. */
export async function describeGenerator(files: SourceFiles, canBuildImages: boolean): Promise<string | null> {
  for (const { title, files: names, command, output } of generators)
    for (const [name, content] of names) {
      if (!(await files.has(name))) continue;
      if (content !== undefined && !content.test((await files.readHead(name)) ?? '')) continue;
      const image = canBuildImages ? ', or add a Dockerfile that builds and serves the site' : '';
      return (
        `The source is a site of ${title} (${name}), which this platform does not build by itself. Run ` +
        `\`${command}\` elsewhere, for example in CI, and deploy the folder ${output} ` +
        `(\`svc up ${output}\`)${image}. ` +
        `Where the host has ${title}, set build.build_command to \`${command}\` and build.output_directory to ` +
        `\`${output}\`.`
      );
    }
  return null;
}

const manifests = ['package.json', 'go.mod', 'requirements.txt', 'pyproject.toml', 'Pipfile', 'manage.py', 'Procfile'];
const otherManifests = [
  'index.html',
  'Gemfile',
  'composer.json',
  'pom.xml',
  'build.gradle',
  'Cargo.toml',
  'Dockerfile',
];
const skipped = /^(?:node_modules|vendor|examples?|tests?|docs?|themes?)$/;

/** Folders that are applications of their own, also of folders such as `apps`: `backend`, `apps/web`. */
async function findApplicationFolders(files: SourceFiles): Promise<string[]> {
  const found: string[] = [];
  let entries = 0;
  for (const name of await files.names('.')) {
    if (!/^[A-Za-z][\w.@+-]{0,80}$/.test(name) || skipped.test(name)) continue;
    if (await hasAny(files, name, [...manifests, ...otherManifests])) {
      found.push(name);
      continue;
    }
    const names = await files.names(name);
    entries += names.length;
    if (entries > SEARCHED_ENTRIES_MAX) break;
    for (const below of names) {
      if (!/^[A-Za-z][\w.@+-]{0,80}$/.test(below)) continue;
      if (await hasAny(files, `${name}/${below}`, manifests)) found.push(`${name}/${below}`);
    }
  }
  return found;
}

async function hasAny(files: SourceFiles, directory: string, names: string[]): Promise<boolean> {
  for (const name of names) if (await files.has(path.posix.join(directory, name))) return true;
  return false;
}

/** A sentence for a source whose applications are in folders, or members of a go.work; null for others. */
export async function describeFolders(files: SourceFiles): Promise<string | null> {
  const workspace = await findGoWorkspace(files);
  const modules = workspace === null ? [] : modulesBelow(workspace);
  const folders = modules.length > 0 ? modules : await findApplicationFolders(files);
  if (folders.length === 0) return null;
  const what = modules.length > 0 ? 'The source is a Go workspace (go.work)' : 'The source has applications in folders';
  const one = folders.length === 1 ? 'it' : 'one of them, and make an application for each that should run';
  return `${what}: ${listNames(folders)}. Set build.root_directory to ${one}.`;
}
