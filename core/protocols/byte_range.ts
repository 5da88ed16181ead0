// The Range header with a single byte range (RFC 9110 §14.1.2).

/** Both ends are inclusive. */
export interface ByteRange {
  start: number;
  end: number;
}

/**
 * @returns null without a range, with several, or in other units; `reversed` for one that ends before it starts (RFC
 * 9110 §14.1.1); `unsatisfiable` for one beyond the content
 */
export function parseByteRange(
  header: string | undefined,
  size: number,
): ByteRange | 'reversed' | 'unsatisfiable' | null {
  const [, first, last] = /^bytes=(\d*)-(\d*)$/.exec(header ?? '') ?? [];
  if (first === undefined || last === undefined || first + last === '') return null;
  if (first !== '' && last !== '' && Number(last) < Number(first)) return 'reversed';
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1);
  return start < size && start <= end ? { start, end } : 'unsatisfiable';
}
