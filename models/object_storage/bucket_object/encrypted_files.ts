// Files that the key of the installation encrypts, by their rows. The first bytes of a file prove nothing: those of
// other files are what clients have sent.
import type { Sql } from '../../../core/context';
import { named } from '../../../db/statement';

interface EncryptedFile {
  bucketId: string;
  fileId: string;
}

const PAGE_SIZE = 1_000;

const OBJECTS = `select file_id, bucket_id, metadata from bucket_objects where file_id > $1 order by file_id`;
const PARTS = `select p.file_id, o.bucket_id, o.metadata from bucket_object_parts p
  join bucket_objects o on o.id = p.object_id where p.file_id > $1 order by p.file_id`;
const UPLOADED = `select p.file_id, u.bucket_id, u.object -> 'metadata' as metadata from bucket_upload_parts p
  join bucket_uploads u on u.id = p.upload_id where p.file_id > $1 order by p.file_id`;

// The time of a statement does not grow with the tables, however few of their files are encrypted.
const PAGES = [UPLOADED, PARTS, OBJECTS].map((files) =>
  named(`select file_id, bucket_id, metadata ->> 'encryption' is not null as is_encrypted
    from (${files} limit ${PAGE_SIZE}) page order by file_id`),
);

interface Row {
  file_id: string;
  bucket_id: string;
  is_encrypted: boolean;
}

/** Page by page, those of objects, of their parts and of uploads that are not complete. */
export async function* encryptedFiles(sql: Sql): AsyncGenerator<EncryptedFile[]> {
  for (const page of PAGES) {
    let rows: Row[];
    let after = '';
    do {
      rows = await sql.query<Row>(page, [after]);
      const encrypted = rows.filter(({ is_encrypted }) => is_encrypted);
      yield encrypted.map(({ bucket_id: bucketId, file_id: fileId }) => ({ bucketId, fileId }));
      after = rows.at(-1)?.file_id ?? after;
    } while (rows.length === PAGE_SIZE);
  }
}
