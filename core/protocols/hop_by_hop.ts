/** Header fields of one connection alone, which no proxy passes on (RFC 9110 section 7.6.1). */
export const HOP_BY_HOP: readonly string[] = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
];
