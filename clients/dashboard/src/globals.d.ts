/** Root field of the API -> method and path of its REST operation; made by build.mjs. */
declare module '#operations' {
  const operations: Record<string, [method: string, path: string]>;
  export default operations;
}
