// Parses responses of providers: only the used fields, with the expected types.

import type { GitBranch } from '../../core/protocols/git_provider';

/* oxlint-disable typescript/no-explicit-any -- shapes of four providers */

export function toText(value: any, otherwise = ''): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : otherwise;
}

/** RFC 3339 in UTC with milliseconds; null for an invalid time. */
export function toTime(value: any): string | null {
  const ms = typeof value === 'string' ? Date.parse(value) : NaN;
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}

export function list(value: any): any[] {
  return Array.isArray(value) ? value : [];
}

/** @param sha of the newest commit, which each provider has at another place */
export function branchWith(row: any, sha: unknown): GitBranch {
  return { name: toText(row?.name), commit_sha: toText(sha), protected: row?.protected === true };
}

export const PER_PAGE = 100;

/** Next page of lists with page numbers, if this page is full. */
export function nextPage(rows: readonly unknown[], page: number, perPage = PER_PAGE): string | null {
  return rows.length < perPage ? null : String(page + 1);
}

export function pageNumber(at: string | null): number {
  return Math.max(1, Number(at) || 1);
}

/** Encodes each segment of a name, and keeps the slashes. */
export function segments(name: string): string {
  return name.split('/').map(encodeURIComponent).join('/');
}
