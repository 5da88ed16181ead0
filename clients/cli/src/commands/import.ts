// db import: sends a file to a database, or names where its data are.
import * as fs from 'node:fs';
import { sessionCommand, text, toggle, tuple, word } from '../command';
import { Failure } from '../failure';
import { uploadFile } from '../http/upload';
import { notice } from '../output/notice';
import { printRows, type Row } from '../output/print';
import type { Session } from '../session';
import { waitWhile } from '../settle';

type Flags = { readonly exclude?: string; readonly follow?: boolean; readonly detach?: boolean };

const TABLES = { TABLE: 'name', 'IN THE SOURCE': 'rows_read', IMPORTED: 'rows' };
const WORKING = ['awaiting_upload', 'pending', 'running'];

/** @param find the database of a name or an id */
export const importCommand = (find: (session: Session, given: string) => Promise<Row>) =>
  sessionCommand<Partial<Flags>, [string, string]>({
    brief: 'Import a dump, or another database: svc db import NAME orders.dump',
    text:
      'From a file, an https address, or a server: postgresql://user:password@host/name, mysql://…. PostgreSQL takes ' +
      'plain SQL and archives of pg_dump, MariaDB SQL of mysqldump, Redis an RDB file; compressed with gzip, too. ' +
      'What fails is taken back.',
    target: 'project',
    flags: {
      exclude: text('Tables whose rows are left out, with commas', 'tables'),
      follow: toggle('Of PostgreSQL: apply what changes at the source, until db finish-import'),
      detach: toggle('Do not wait for the end'),
    },
    args: tuple(word('database', 'Name or id of the database'), word('source', 'File or address')),
    async run(session, flags, given, source) {
      const isAddress = /^[a-z]+:\/\//.test(source);
      const bytes = isAddress ? 0 : sizeOf(source);
      const path = `/v2/databases/${(await find(session, given)).id}/imports`;
      const made = await session.request('POST', path, {
        body: {
          source: isAddress ? { url: source } : { upload: true },
          ...(flags.follow && { mode: 'follow' }),
          ...(flags.exclude !== undefined && { exclude: flags.exclude.split(',') }),
        },
      });
      const one = `${path}/${made.id}`;
      if (!isAddress) {
        await uploadFile(
          session,
          { file: source, bytes, type: 'application/octet-stream' },
          String(made.upload_url),
        ).catch(async (error: unknown) => {
          await session.send('POST', `${one}/cancel`).catch(() => undefined);
          throw error;
        });
      }
      if (flags.detach) return notice(`The import ${made.id} goes on.`);
      const isWorking = (row: Row): boolean => WORKING.includes(String(row.status)) && row.phase !== 'following';
      report(await waitWhile(session, one, isWorking, {}), flags);
    },
  });

/** @param find the database of a name or an id */
export const finishImportCommand = (find: (session: Session, given: string) => Promise<Row>) =>
  sessionCommand<{ readonly readOnly?: boolean }, [string]>({
    brief: 'Switch over an import that follows its source: svc db finish-import NAME',
    text: 'Stop what writes at the source before, or have it made read-only.',
    target: 'project',
    flags: { readOnly: toggle('Make the source read-only, and end its sessions') },
    args: tuple(word('database', 'Name or id of the database')),
    async run(session, flags, given) {
      const path = `/v2/databases/${(await find(session, given)).id}/imports`;
      const [row] = (await session.request('GET', `${path}?status=running&limit=1`)).data as Row[];
      if (row?.phase !== 'following') throw new Failure(`No import into ${given} follows its source now.`);
      const one = `${path}/${row.id}`;
      await session.request('POST', `${one}/finish`, {
        body: { make_source_read_only: flags.readOnly ?? false },
      });
      const ended = await waitWhile(session, one, ({ phase }) => phase === 'finishing', {});
      if (ended.status === 'running') throw new Failure(String(ended.status_reason ?? 'It was not finished.'));
      report(ended, flags);
    },
  });

function sizeOf(file: string): number {
  const found = fs.statSync(file, { throwIfNoEntry: false });
  if (!found?.isFile()) throw new Failure(`There is no file ${file}.`);
  return found.size;
}

function report(row: Row, flags: Parameters<typeof printRows>[2]): void {
  printRows(row.tables as Row[], TABLES, flags);
  for (const { kind, name, reason } of row.not_taken_over as Row[])
    notice(`Not imported: ${String(kind)} ${String(name)}. ${String(reason)}`);
  if (row.phase === 'following') return notice('Changes at the source are applied until `svc db finish-import`.');
  if (row.status !== 'completed') throw new Failure(String(row.status_reason ?? 'The import failed.'));
}
