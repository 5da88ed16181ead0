// Classification of rejections.

/** Whether a rejection means that the address does not exist or no longer accepts mail (RFC 3463 §3.2, §3.3). */
export function isHardBounce(code: number | null, response: string): boolean {
  const enhanced = /\b5\.(\d{1,3})\.(\d{1,3})\b/.exec(response);
  if (enhanced) {
    const [subject, detail] = [Number(enhanced[1]), Number(enhanced[2])];
    return (subject === 1 && [1, 2, 3, 6, 10].includes(detail)) || (subject === 2 && detail === 1);
  }
  return code !== null && [550, 551, 553].includes(code);
}
