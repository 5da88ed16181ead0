// The source of an application: merging of a request body into the stored source, and validation of the result.
import { meetsNeeds, type PresetDefinition } from '../../../core/catalog/catalogs';
import type { Context } from '../../../core/context';
import { problem, validationFailed, type FieldError } from '../../../core/errors';
import type {
  ApplicationSourceType,
  CreateApplicationSourceInput,
  UpdateApplicationSourceInput,
} from '../../../schema/types';
import { Registry } from '../../registries/registry';
import { validateGitAddress } from '../../integrations/git_address';
import { imageMistakes } from './image_address';
import { requireRepository } from './repository';
import { requestedChanges } from '../../base/requested_changes';

export interface Source {
  type: Exclude<ApplicationSourceType, 'template'>;
  git_integration_id: string | null;
  repository_id: string | null;
  shared_repository_id: string | null;
  repository_url: string | null;
  branch: string | null;
  image: string | null;
  registry_id: string | null;
  preset: string | null;
}

/** What a deployment is made of: the source of its application, or an upload. */
export interface DeployedSource extends Source {
  source_upload_id?: string;
  sha256?: string;
  bytes?: number;
}

type SourceField = Exclude<keyof Source, 'type'>;

const NO_REPOSITORY = {
  git_integration_id: null,
  repository_id: null,
  shared_repository_id: null,
  repository_url: null,
};
const EMPTY = { ...NO_REPOSITORY, branch: null, image: null, registry_id: null, preset: null };
const FIELDS: Record<Source['type'], readonly SourceField[]> = {
  git: ['git_integration_id', 'repository_id', 'shared_repository_id', 'repository_url', 'branch'],
  image: ['image', 'registry_id'],
  preset: ['preset'],
  upload: [],
};

/** The source of one deployment that is made of an upload. */
export function sourceOfUpload({ id, sha256, size_bytes }: UploadedArchive): DeployedSource {
  return { ...EMPTY, type: 'upload', source_upload_id: id, sha256, bytes: size_bytes };
}

interface UploadedArchive {
  id: string;
  sha256: string;
  size_bytes: number;
}

/** The source that a preset fills in. */
export function sourceOfPreset({ template, image }: PresetDefinition): Source {
  return template === null ? { ...EMPTY, type: 'image', image } : { ...EMPTY, type: 'preset', preset: template };
}

/** @throws validation_failed, reference_not_found */
export async function newSource(ctx: Context, input: CreateApplicationSourceInput): Promise<Source> {
  const source = { ...EMPTY, ...given(input, null) };
  return checked(ctx, source as Source, null);
}

/**
 * The present source with the changes of a PATCH: absent fields stay, another type or repository replaces the old one.
 * @throws validation_failed, reference_not_found
 */
export async function changedSource(
  ctx: Context,
  current: Source | null,
  input: UpdateApplicationSourceInput | null,
): Promise<Source | null> {
  if (input === null) return null;
  const changes = given(input, current);
  if (current && !Object.keys(requestedChanges(changes, current)).length) return current;
  const kept = changes.type === undefined || changes.type === current?.type ? current : null;
  const moved = changes.git_integration_id ?? changes.shared_repository_id ?? changes.repository_url;
  const merged = { ...EMPTY, ...kept, ...(moved && NO_REPOSITORY), ...changes };
  if (!merged.type) throw validationFailed([{ field: 'source.type', code: 'required', detail: 'is required' }]);
  return checked(ctx, { ...merged, type: merged.type }, current);
}

/** With `preset` for its former name: answers show both, and a client may change either of them. */
function given(
  { type, preset, template, ...rest }: UpdateApplicationSourceInput,
  current: Source | null,
): Partial<Source> {
  const isFormer = template !== undefined && (preset === undefined || preset === (current?.preset ?? null));
  const named = { ...rest, type: type === 'template' ? 'preset' : type, preset: isFormer ? template : preset };
  return Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined)) as Partial<Source>;
}

async function checked(ctx: Context, source: Source, current: Source | null): Promise<Source> {
  const mistakes = [...foreignFields(source), ...missingFields(source), ...addressMistakes(ctx, source, current)];
  if (mistakes.length) throw validationFailed(mistakes);
  await requireReferences(ctx, source, current);
  return source;
}

function foreignFields(source: Source): FieldError[] {
  const { type } = source;
  const others = (Object.keys(EMPTY) as SourceField[]).filter(
    (field) => source[field] !== null && !FIELDS[type].includes(field),
  );
  return others.map((field) => ({
    field: `source.${field}`,
    code: 'depends_on',
    detail: `is not for the type ${type}`,
  }));
}

function missingFields(source: Source): FieldError[] {
  if (source.type === 'upload') return [];
  if (source.type !== 'git')
    return source[source.type] === null ? [required(source.type, `is required for the type ${source.type}`)] : [];
  if (source.repository_id !== null && source.git_integration_id === null) {
    return [{ field: 'source.repository_id', code: 'depends_on', detail: 'needs git_integration_id' }];
  }
  if (source.git_integration_id !== null && source.repository_id === null) {
    return [{ field: 'source.git_integration_id', code: 'depends_on', detail: 'needs repository_id' }];
  }
  const repository = source.git_integration_id ?? source.shared_repository_id ?? source.repository_url;
  return repository === null
    ? [
        required(
          'repository_url',
          'one of git_integration_id, shared_repository_id, repository_url is required for the type git',
        ),
      ]
    : [];
}

function required(field: SourceField, detail: string): FieldError {
  return { field: `source.${field}`, code: 'required', detail };
}

function addressMistakes(ctx: Context, { repository_url, image }: Source, current: Source | null): FieldError[] {
  const detail = repository_url === null ? null : validateGitAddress(repository_url, ctx.config);
  if (detail !== null) return [{ field: 'source.repository_url', code: 'invalid_format', detail }];
  // An image that a preset of the operator has filled in stays.
  return image === null || image === current?.image ? [] : imageMistakes(ctx, 'source.image', image);
}

const REPOSITORY_FIELDS = ['git_integration_id', 'repository_id', 'shared_repository_id'] as const;

async function requireReferences(ctx: Context, source: Source, current: Source | null): Promise<void> {
  if (source.registry_id !== null) await requireRegistry(ctx, source.registry_id, source.image);
  // What the source named before was checked then.
  if (REPOSITORY_FIELDS.some((field) => source[field] !== (current?.[field] ?? null)))
    await requireRepository(ctx, source);
  if (source.preset === null) return;
  const facts = await ctx.catalogs.facts();
  const shipped = ctx.catalogs
    .presets()
    .some(({ template, needs }) => template === source.preset && meetsNeeds(facts, needs));
  if (!shipped) throw notFound('preset');
}

/** @throws reference_not_found, validation_failed for an image of another registry */
async function requireRegistry(ctx: Context, id: string, image: string | null): Promise<void> {
  const registry = await Registry.referenced(ctx, id, 'source.registry_id');
  const start = `${registry.hostAt(ctx)}/`;
  if (!image?.startsWith(start))
    throw validationFailed([{ field: 'source.image', code: 'invalid_format', detail: `must begin with ${start}` }]);
}

function notFound(field: SourceField): Error {
  return problem('reference_not_found', `source.${field} names nothing that this project can use.`, {
    field: `source.${field}`,
  });
}
