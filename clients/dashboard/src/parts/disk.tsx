// How full a disk is: of volumes and of databases, whose gigabytes have 2^30 bytes.
const MEGABYTE = 2 ** 20;
const GIGABYTE = 2 ** 30;
/** From here on a disk is said to be nearly full. */
export const FULL_SHARE = 0.8;

interface DiskUsedProps {
  /** What has the disk, for those who hear the meter. */
  name: string;
  /** Null until it was measured. */
  usedBytes: number | null;
  sizeGb: number;
  /** More than its size allows. */
  isOver?: boolean;
}

export function DiskUsed({ name, usedBytes, sizeGb, isOver = false }: DiskUsedProps) {
  if (usedBytes === null) return <>{sizeGb} GB</>;
  const max = sizeGb * GIGABYTE;
  return (
    <>
      {usedText(usedBytes)} of {sizeGb} GB{isOver && <strong> (over its size)</strong>}
      <br />
      <meter min={0} max={max} high={max * FULL_SHARE} value={usedBytes} aria-label={`Used of ${name}`} />
    </>
  );
}

/** Between 0 and 1, or more. */
export function shareUsed(usedBytes: number | null, sizeGb: number): number {
  return (usedBytes ?? 0) / (sizeGb * GIGABYTE);
}

function usedText(bytes: number): string {
  if (bytes < GIGABYTE) return `${Math.round(bytes / MEGABYTE)} MB`;
  return `${(bytes / GIGABYTE).toFixed(1)} GB`;
}
