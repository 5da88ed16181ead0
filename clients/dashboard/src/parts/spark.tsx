// A line as small as a word: how something went in the last hour. The numbers beside it say what it means.
const WIDTH = 96;
const HEIGHT = 24;

interface SparkProps {
  /** One value for each minute; null where nothing was measured. */
  values: readonly (number | null)[];
  tone?: 'bad' | undefined;
}

export function Spark({ values, tone }: SparkProps) {
  const max = Math.max(...values.map((value) => value ?? 0), 1e-9);
  const step = WIDTH / Math.max(1, values.length - 1);
  const points = values.map((value, index) => {
    const y = HEIGHT - 1 - ((value ?? 0) / max) * (HEIGHT - 2);
    return `${(index * step).toFixed(1)},${y.toFixed(1)}`;
  });
  return (
    <svg class={`spark ${tone ?? ''}`} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <polyline points={points.join(' ')} />
    </svg>
  );
}
