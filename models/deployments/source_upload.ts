// Archives that people upload as the source of a deployment. The bytes are files (drivers/source).
import type { Context, Sql } from '../../core/context';
import { problem, validationFailed } from '../../core/errors';
import { limits } from '../../core/limits';
import { defineStates } from '../../core/states';
import type { CreateSourceUploadInput, QueryListSourceUploadsArgs, SourceUploadStatus } from '../../schema/types';
import { named } from '../../db/statement';
import { Application } from '../applications/application';
import { page, type Page } from '../base/page';
import type { ParentLimit } from '../base/quota';
import { Resource } from '../base/resource';
import { uploadAddress } from './source_upload/address';

const USED = named('update source_uploads set last_used_at = now() where id = $1');
const MARK = named(`select mark from host_directories where name = 'source_uploads'`);

/** A gzipped tar or a zip, from the request for an address until nothing uses it any more. */
export class SourceUpload extends Resource {
  static readonly table = 'source_uploads';
  static readonly kind = 'source_upload';
  static readonly idPrefix = 'src';
  static override readonly states = defineStates<SourceUploadStatus>({
    initial: ['waiting'],
    moves: { waiting: ['ready', 'refused'] },
  });
  static override readonly filters = { status: 'status = ?' };
  static override readonly parentLimit: ParentLimit = {
    column: 'application_id',
    max: limits.sourceUploadsPerApplication,
    resource: 'source_uploads',
    parent: 'An application',
    rows: 'source uploads',
  };

  declare application_id: string;
  declare status: SourceUploadStatus;
  declare status_reason: string | null;
  /** The announced digest; once ready, the digest of the received archive. */
  declare sha256: string | null;
  declare size_bytes: number | null;
  declare bytes_max: number;
  declare expires_at: string;
  /** Known to the response that creates it alone: with it whoever reads could write. */
  declare upload_url?: string;

  /** One page of an application. @throws not_found, invalid_cursor */
  static async list(ctx: Context, { id, ...args }: QueryListSourceUploadsArgs): Promise<Page<SourceUpload>> {
    await Application.get(ctx, id);
    return page(SourceUpload, ctx, args, { application_id: id });
  }

  /** An upload that waits for its archive. @throws not_found, validation_failed, engine_unavailable, quota_exceeded */
  static async create(ctx: Context, applicationId: string, input: CreateSourceUploadInput): Promise<SourceUpload> {
    const application = await Application.ofChild(ctx, applicationId);
    const bytes_max = ctx.config.sourceSizeMb * 2 ** 20;
    const { sha256, size_bytes } = input;
    if (size_bytes != null && size_bytes > bytes_max)
      throw validationFailed([{ field: 'size_bytes', code: 'too_large', detail: `must be at most ${bytes_max}` }]);
    // What arrives elsewhere is passed on to a process that has it.
    if (ctx.config.hostUrl === null || ctx.config.fileStore !== null) await requireFilesOfHost(ctx);
    // Whole seconds, as the address has them.
    const expires = Math.floor(Date.now() / 1000) + limits.sourceUploadSeconds;
    const upload = await SourceUpload.insert(ctx, {
      application_id: application.id,
      sha256: sha256?.toLowerCase() ?? null,
      size_bytes: size_bytes ?? null,
      bytes_max,
      expires_at: new Date(expires * 1000).toISOString(),
    });
    upload.upload_url = uploadAddress(ctx, upload.id, expires);
    return upload;
  }

  /**
   * The upload that a deployment names, kept from being swept. @throws reference_not_found for one of another
   * application, or one without a usable archive
   */
  static async toDeploy(ctx: Context, application: Application, id: string): Promise<SourceUpload> {
    const field = 'source_upload_id';
    const upload = await SourceUpload.referenced(ctx, id, field);
    if (upload.application_id !== application.id)
      throw problem('reference_not_found', `${field} names no upload of this application.`, { field });
    if (upload.status === 'waiting')
      throw problem('reference_not_found', 'The archive of the upload has not been received.', { field });
    if (upload.status === 'refused')
      throw problem('reference_not_found', `The archive of the upload was refused. ${upload.status_reason}`, { field });
    await ctx.sql.query(USED, [upload.id]);
    return upload;
  }
}

/**
 * The process that receives an archive must have the file store or the directory that the host unpacks from. Before the
 * first host there is none to compare with. @throws engine_unavailable
 */
export async function requireFilesOfHost(ctx: UploadsHolder): Promise<void> {
  if ((await sharesFilesOfHost(ctx)) !== false) return;
  throw problem(
    'engine_unavailable',
    'This process does not share its files with the process that builds applications, so it cannot take uploads. ' +
      'The operator has to set the same FILE_STORE for both, to run both on the same directory, or to set HOST_URL.',
  );
}

/** Whether this process has the file store or the directory of the host; null before the first host. */
export async function sharesFilesOfHost({ sql, probes }: UploadsHolder): Promise<boolean | null> {
  const [host] = await sql.query<{ mark: string }>(MARK, []);
  return host ? host.mark === (await probes.sourceUploadsMark()) : null;
}

interface UploadsHolder {
  sql: Sql;
  probes: Pick<Context['probes'], 'sourceUploadsMark'>;
}
