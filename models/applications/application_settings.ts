// Settings are a document in the application's row: only values other than the defaults, which are defined here, are
// stored. null in a default means that something else decides as long as nothing is set (docs/decisions/0013).
import { isDeepStrictEqual } from 'node:util';
import { buildpackBuilderRows } from '../../core/catalog/catalogs';
import type { Context } from '../../core/context';
import { problem, validationFailed, type FieldError } from '../../core/errors';
import type { ApplicationSettings, UpdateApplicationSettingsInput } from '../../schema/types';
import type { Application } from './application';
import { previewDatabases } from './preview_databases';
import { hasOwnPorts } from '../reference/region';

type Settings = Omit<ApplicationSettings, 'application_id'>;
type Sections = { [Name in keyof Settings as Settings[Name] extends object ? Name : never]: Settings[Name] };

/** As in the row: sections and fields that were never set are missing. */
export type StoredSettings = Partial<Omit<Settings, keyof Sections>> & {
  [Name in keyof Sections]?: Partial<Sections[Name]>;
};

const DEFAULTS: Settings = {
  build: {
    builder: 'buildpack',
    buildpack_builder: null,
    buildpacks: [],
    dockerfile_path: 'Dockerfile',
    dockerfile_target: null,
    image: null,
    root_directory: '.',
    build_command: null,
    output_directory: null,
  },
  run: { release_command: null, shutdown_grace_seconds: 30 },
  http: { port: null, force_https: true, request_timeout_seconds: 60, sticky_sessions: false },
  health_check: {
    type: null,
    path: null,
    interval_seconds: 10,
    timeout_seconds: 5,
    failure_threshold: 3,
    grace_period_seconds: 60,
  },
  previews: { auto_create: false, expire_after_days: 7, databases: [] },
  maintenance_mode: false,
  log_retention_days: 7,
};

/** Every setting of an application, defaults filled in. */
export function settingsOf(application: Pick<Application, 'id' | 'settings'>): ApplicationSettings {
  return { application_id: application.id, ...(merge(DEFAULTS, application.settings) as Settings) };
}

/**
 * Merges a change into the settings: sections field by field, lists whole; null and the default itself take a setting
 * back to its default. The rules hold for the result.
 * @throws validation_failed, reference_not_found
 */
export async function changeSettings(
  ctx: Context,
  application: Application,
  input: UpdateApplicationSettingsInput,
): Promise<Application> {
  const databases = await previewDatabases(ctx, application.id, input.previews?.databases ?? null);
  const sent = databases ? { ...input, previews: { ...input.previews, databases } } : input;
  const settings = withoutDefaults(merge(application.settings, sent), DEFAULTS) as StoredSettings;
  const mistakes = [
    ...healthCheckMistakes((merge(DEFAULTS, settings) as Settings).health_check),
    ...(await portMistakes(ctx, application, settings)),
    ...outputMistakes((merge(DEFAULTS, settings) as Settings).build),
  ];
  if (mistakes.length) throw validationFailed(mistakes);
  const { buildpack_builder } = settings.build ?? {};
  if (buildpack_builder && buildpack_builder !== application.settings.build?.buildpack_builder)
    await requireBuilder(ctx, buildpack_builder);
  await application.update(ctx, { settings });
  ctx.activity.changed_fields = pathsOf(input);
  return application;
}

type Document = Record<string, unknown>;

function merge(base: object, change: object): object {
  const result: Document = { ...base };
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined) continue;
    result[name] = isDocument(value) ? merge((result[name] ?? {}) as Document, value) : value;
  }
  return result;
}

/** Settings for which null is a value of its own, beside the default. */
const NULL_IS_SET = new Set(['expire_after_days']);

function withoutDefaults(settings: object, defaults: object): Document {
  const known = defaults as Document;
  const kept = Object.entries(settings).map(([name, value]) => {
    if (isDocument(value)) return [name, withoutDefaults(value, known[name] as object)] as const;
    const isUnset = (value === null && !NULL_IS_SET.has(name)) || isDeepStrictEqual(value, known[name]);
    return [name, isUnset ? undefined : value] as const;
  });
  return Object.fromEntries(
    kept.filter(([, value]) => value !== undefined && !(isDocument(value) && Object.keys(value).length === 0)),
  );
}

function isDocument(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function healthCheckMistakes(check: Settings['health_check']): FieldError[] {
  const mistakes: FieldError[] = [];
  if (check.type === 'http' && check.path == null) {
    mistakes.push({ field: 'health_check.path', code: 'depends_on', detail: 'is needed by the type http' });
  }
  if (check.timeout_seconds >= check.interval_seconds) {
    mistakes.push({
      field: 'health_check.timeout_seconds',
      code: 'too_large',
      detail: `must be less than interval_seconds (${check.interval_seconds})`,
    });
  }
  return mistakes;
}

/** An image says itself what it runs. */
function outputMistakes({ builder, output_directory }: Settings['build']): FieldError[] {
  if (output_directory == null || builder === 'buildpack') return [];
  const detail =
    'needs build.builder `buildpack`: a Dockerfile says itself what runs. ' +
    'Set build.output_directory to null, or the builder to `buildpack`';
  return [{ field: 'build.output_directory', code: 'depends_on', detail }];
}

async function portMistakes(ctx: Context, application: Application, { http }: StoredSettings): Promise<FieldError[]> {
  const isSame = http?.port == null || http.port === application.settings.http?.port;
  if (isSame || (await hasOwnPorts(ctx)) !== false) return [];
  const detail =
    'needs instances with networks of their own, which this host does not give: the program must listen on the port ' +
    'that the PORT variable names';
  return [{ field: 'http.port', code: 'depends_on', detail }];
}

async function requireBuilder(ctx: Context, id: string): Promise<void> {
  const builders = buildpackBuilderRows(await ctx.catalogs.facts());
  if (builders.some((builder) => builder.id === id)) return;
  throw problem('reference_not_found', 'build.buildpack_builder names no builder of this platform.', {
    field: 'build.buildpack_builder',
  });
}

/** The dotted names of what a body sets: they go into the activity, values never do. */
function pathsOf(document: object, path = ''): string[] {
  return Object.entries(document).flatMap(([name, value]) =>
    isDocument(value) ? pathsOf(value, `${path}${name}.`) : [path + name],
  );
}
