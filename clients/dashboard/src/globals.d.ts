/** Root field of the API -> method and path of its REST operation; made by build.mjs. */
declare module '#operations' {
  const operations: Record<string, [method: string, path: string]>;
  export default operations;
}

/** What the generic pages know of the API; made by build.mjs, and loaded with the first such page. */
declare module '#resources' {
  import type { ResourceTable } from './api/resources/table';
  const table: ResourceTable;
  export default table;
}
