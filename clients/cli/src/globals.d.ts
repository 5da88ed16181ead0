/** Set by build.mjs. */
declare const SVC_VERSION: string;

declare module '#operations' {
  /** JSON of what operation_table.mjs makes. */
  const text: string;
  export default text;
}
