// up: the files of a folder, deployed.
import * as fs from 'node:fs';
import * as path from 'node:path';
import { findApplicationUrl } from '../application_url';
import { duration, maybe, sessionCommand, toggle, tuple } from '../command';
import { EXIT, Failure, usageFailure } from '../failure';
import { uploadFile } from '../http/upload';
import { notice } from '../output/notice';
import { formatBytes, printOne, writeLine, type Row } from '../output/print';
import { canAsk, confirm } from '../output/terminal';
import type { Session } from '../session';
import { followDeployment } from '../settle';
import { packArchive } from '../source/archive';
import { findSourceFiles } from '../source/files';
import { createApplication, linkFolder, nameOfFolder } from './link';

type UpFlags = {
  readonly create?: boolean | undefined;
  readonly detach?: boolean | undefined;
  readonly clearCache?: boolean | undefined;
  readonly timeout?: number | undefined;
};

export const up = sessionCommand<UpFlags, [string?]>({
  brief: 'Deploy this folder',
  text:
    'Packs the files that Git tracks or would add (elsewhere, those that .gitignore does not leave out), without ' +
    'what .dockerignore and .svcignore leave out, sends them unless the server has the same archive, and follows the ' +
    'deployment to its end. A .env that Git does not have is never sent: `svc env push` sets its variables. The log ' +
    'goes to standard error, the address to standard output.',
  asks: true,
  flags: {
    create: toggle('Create the application if the folder is not linked'),
    detach: toggle('Do not wait for the deployment'),
    clearCache: toggle('Build without the cache'),
    timeout: duration('Wait no longer than this'),
  },
  args: tuple(maybe('folder', 'Folder (default: the linked one, or this one)')),
  async run(session, flags, given) {
    const folder = path.resolve(given ?? session.link?.folder ?? '.');
    if (!fs.statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw usageFailure(`${folder} is no folder.`);
    const application = await findOrCreate(session, flags, folder);
    const upload = await uploadFolder(session, application, folder);
    const deployment = await session.request('POST', `/v2/applications/${application}/deployments`, {
      body: { source_upload_id: upload, ...(flags.clearCache && { clear_cache: true }) },
    });
    if (flags.detach) return printOne(deployment, flags, { id: 'id', number: 'number', status: 'status' });
    notice(`Deployment ${deployment.number}`);
    const ended = await followDeployment(session, application, deployment, { ...flags, log: 'shown' });
    await printDeployed(session, application, ended, flags);
  },
});

/** What a finished deployment leaves on standard output: the address, or the deployment where it is asked for. */
export async function printDeployed(
  session: Session,
  application: string,
  ended: Row,
  flags: { json?: boolean | undefined; field?: string | undefined },
): Promise<void> {
  if (ended.status_reason) notice(String(ended.status_reason));
  if (flags.json || flags.field !== undefined) return printOne(ended, flags);
  const url = await findApplicationUrl(session, application);
  if (url !== null) writeLine(url);
}

async function findOrCreate(
  session: Session,
  flags: UpFlags & { app?: string | undefined; yes?: boolean | undefined },
  folder: string,
): Promise<string> {
  if (session.link || flags.app || process.env.SVC_APP) return session.application();
  const name = nameOfFolder(folder);
  if (!flags.create) {
    if (!canAsk())
      throw usageFailure('This folder is not linked to an application.', 'Pass --app, --create, or run `svc link`.');
    await confirm(`This folder is not linked. Create the application ${name}?`, flags);
  }
  const application = await createApplication(session, name);
  linkFolder(session, application, folder);
  return String(application.id);
}

/** @returns the id of the upload: one that the server has already, where the archive is the same */
async function uploadFolder(session: Session, application: string, folder: string): Promise<string> {
  const { files, notices } = findSourceFiles(folder);
  for (const one of notices) notice(one);
  if (!files.length) throw new Failure(`There is nothing to deploy in ${folder}.`, EXIT.usage);
  const archive = await packArchive(files);
  try {
    const uploads = `/v2/applications/${application}/source_uploads`;
    const same = (await session.list(uploads, { status: 'ready' })).find(({ sha256 }) => sha256 === archive.sha256);
    if (same) {
      notice(`Nothing has changed in ${files.length} files: the server has them.`);
      return String(same.id);
    }
    const upload = await session.request('POST', uploads, {
      body: { sha256: archive.sha256, size_bytes: archive.bytes },
    });
    notice(`Sending ${files.length} files, ${formatBytes(archive.bytes)}.`);
    await uploadFile(session, { ...archive, type: 'application/gzip' }, String(upload.upload_url));
    return String(upload.id);
  } finally {
    archive.remove();
  }
}
