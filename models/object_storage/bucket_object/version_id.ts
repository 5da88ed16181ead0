import { randomBytes } from 'node:crypto';

const BYTES = 24;

/** 32 random characters, the length of version ids at AWS. */
export function newVersionId(): string {
  return randomBytes(BYTES).toString('base64url');
}
