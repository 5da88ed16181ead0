import { randomBytes } from 'node:crypto';

const BYTES = 24;

/** 32 characters without a meaning, as those of AWS. */
export function newVersionId(): string {
  return randomBytes(BYTES).toString('base64url');
}
