// Sizes of instances: from small to large, with what they give and what they cost.
import { graphql, type ResultOf } from '../api/graphql';

export const SIZE_FIELDS = graphql(`
  fragment SizeFields on ApplicationType {
    id
    name
    vcpu
    memory_mb
    disk_gb
    max_instances
    regions
    price_monthly
    currency
    default
    available
  }
`);

export type Size = ResultOf<typeof SIZE_FIELDS>;

/** By memory, then by processors. @param region null: of all regions */
export function inOrder(sizes: readonly Size[], region: string | null): Size[] {
  return sizes
    .filter(({ regions }) => !region || regions.includes(region))
    .sort((a, b) => a.memory_mb - b.memory_mb || a.vcpu - b.vcpu || Number(a.price_monthly) - Number(b.price_monthly));
}

/** A number stays on the line of its unit. */
export const memoryText = (mb: number): string => (mb % 1_024 ? `${mb}\u00a0MB` : `${mb / 1_024}\u00a0GB`);

const priceText = ({ price_monthly, currency }: Size): string =>
  Number(price_monthly) ? `${price_monthly} ${currency} a month` : 'free of charge';

/** On a line, for a select. */
export function sizeText(size: Size): string {
  const { name, memory_mb, vcpu, available } = size;
  const obstacle = available ? '' : ' (not enough memory on this installation)';
  return `${name}: ${memoryText(memory_mb)}, ${vcpu} CPU, ${priceText(size)}${obstacle}`;
}

interface SizesProps {
  sizes: readonly Size[];
  /** Empty: the default. */
  chosen: string;
  choose(id: string): void;
}

export function Sizes({ sizes, chosen, choose }: SizesProps) {
  return (
    <fieldset class="choices sizes">
      <legend>Instance size</legend>
      {sizes.map((size) => (
        <label key={size.id} class="choice">
          <input
            type="radio"
            name="application_type"
            value={size.id}
            checked={chosen ? chosen === size.id : size.default}
            disabled={!size.available}
            onChange={() => choose(size.id)}
          />
          <strong>{size.name}</strong>
          <small>
            {memoryText(size.memory_mb)} memory, {size.vcpu}&nbsp;CPU, {size.disk_gb}&nbsp;GB disk
            <br />
            {size.available ? priceText(size) : 'This installation has too little memory for it.'}
          </small>
        </label>
      ))}
    </fieldset>
  );
}
