// Files of other platforms as `platform.yaml` (docs/decisions/0256): one file of this folder for each kind.
import { validationFailed, type FieldErrorCode } from '../../../core/errors';
import { dropPorts } from './application';
import { importCloudFoundry, CLOUD_FOUNDRY_REASONS } from './cloud_foundry';
import { importCompose, COMPOSE_REASONS } from './compose';
import { importDigitalOcean, DIGITALOCEAN_REASONS } from './digitalocean';
import { importFly, FLY_REASONS } from './fly';
import { importHeroku, HEROKU_REASONS } from './heroku';
import { importKamal, KAMAL_REASONS } from './kamal';
import { importRailway, RAILWAY_REASONS } from './railway';
import type { ImportFile } from './read_file';
import { importRender, RENDER_REASONS } from './render';
import { pathFrom, startImport, type Finding, type ImportCatalog, type ImportRun } from './run';
import { reportUntaken, type Reasons } from './sweep';
import { writeImported } from './write_stack';

export type ImportKind =
  | 'cloud_foundry'
  | 'compose'
  | 'digitalocean'
  | 'fly'
  | 'heroku'
  | 'kamal'
  | 'railway'
  | 'render';

export interface ImportInput {
  files: readonly { path: string; content: string }[];
  kind?: ImportKind | null;
  profiles?: readonly string[] | null;
}

export interface ImportedStack {
  document: string;
  kind: ImportKind;
  not_taken_over: Finding[];
  missing_files: string[];
}

interface Importer {
  /** Paths of the file from which it begins. */
  names: RegExp;
  read(run: ImportRun, path: string): void;
  reasons: Reasons;
}

const IMPORTERS: Readonly<Record<ImportKind, Importer>> = {
  compose: { names: /(^|\/)(docker-)?compose[\w.-]*\.ya?ml$/i, read: importCompose, reasons: COMPOSE_REASONS },
  render: { names: /(^|\/)render\.ya?ml$/, read: importRender, reasons: RENDER_REASONS },
  fly: { names: /(^|\/)fly[\w.-]*\.(toml|json|ya?ml)$/, read: importFly, reasons: FLY_REASONS },
  railway: { names: /(^|\/)railway\.(json|toml)$/, read: importRailway, reasons: RAILWAY_REASONS },
  digitalocean: {
    ...{ names: /(^|\/)\.do\/(app|deploy\.template)\.ya?ml$/, read: importDigitalOcean },
    reasons: DIGITALOCEAN_REASONS,
  },
  kamal: { names: /(^|\/)config\/deploy\.ya?ml$/, read: importKamal, reasons: KAMAL_REASONS },
  cloud_foundry: { names: /(^|\/)manifest[\w-]*\.ya?ml$/, read: importCloudFoundry, reasons: CLOUD_FOUNDRY_REASONS },
  heroku: { names: /(^|\/)(app\.json|heroku\.yml|Procfile)$/, read: importHeroku, reasons: HEROKU_REASONS },
};

/** @throws validation_failed with the file and the line of what cannot be read */
export function importStack({ files, kind, profiles }: ImportInput, catalog: ImportCatalog): ImportedStack {
  const given = checkedFiles(files);
  const [found, path] = beginningOf(given, kind ?? null);
  const run = startImport(given, catalog, profiles ?? []);
  const { read, reasons } = IMPORTERS[found];
  read(run, path);
  dropPorts(run);
  reportUntaken(run, reasons);
  return {
    document: writeImported(run),
    kind: found,
    not_taken_over: run.findings,
    missing_files: [...run.missing].sort(),
  };
}

function checkedFiles(files: ImportInput['files']): ImportFile[] {
  const seen = new Set<string>();
  return files.map(({ path: named, content }, index) => {
    const path = pathFrom('', named);
    const refuse = (code: FieldErrorCode, detail: string): never => {
      throw validationFailed([{ field: `files.${index}.path`, code, detail }]);
    };
    if (path === null || path === '.') return refuse('invalid_format', 'must be a path within the folder');
    if (seen.has(path)) return refuse('duplicate', 'is the path of another file, too');
    seen.add(path);
    return { path, content, index };
  });
}

/** The kind, and the file from which it begins. */
function beginningOf(files: readonly ImportFile[], kind: ImportKind | null): [ImportKind, string] {
  const refuse = (detail: string): never => {
    throw validationFailed([{ field: 'kind', code: 'invalid_format', detail }]);
  };
  const [first] = files;
  if (kind !== null) {
    const found = files.find(({ path }) => IMPORTERS[kind].names.test(path)) ?? first;
    return [kind, (found as ImportFile).path];
  }
  const found = (Object.keys(IMPORTERS) as ImportKind[]).flatMap((one): [ImportKind, string][] => {
    const file = files.find(({ path }) => IMPORTERS[one].names.test(path));
    return file ? [[one, file.path]] : [];
  });
  // Those of Heroku lie beside files of others, which say more.
  const others = found.filter(([one]) => one !== 'heroku');
  if (others.length > 1)
    refuse(`must say which of these is meant: ${others.map(([one, path]) => `${one} (${path})`).join(', ')}`);
  return others[0] ?? found[0] ?? refuse(`is needed for files with these names`);
}
