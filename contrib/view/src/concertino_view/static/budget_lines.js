// How the budget was used up, as a line for each limit on the time axis of the timeline: 0 below, the limit above.
// Limits differ by dashes and by their names, not by colour alone.

const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3], [12, 4], [1, 5]];
const COLOURS = ["running", "PARSE_ERR", "OK", "EXEC_ERR", "request", "TIMEOUT"];

export function drawBudget(pen, colours, budget, { top, high, wide, x }) {
  const [head, foot] = [top + 14, top + high - 3];
  pen.fillStyle = colours.line;
  pen.fillRect(0, top, wide, 1);
  pen.fillRect(0, head, wide, 1);
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  let right = 4;
  budget.forEach(({ name, limit, used, points }, place) => {
    const height = (value) => foot - (foot - head) * Math.min(1, limit > 0 ? value / limit : 1);
    const colour = colours[COLOURS[place % COLOURS.length]];
    pen.strokeStyle = colour;
    pen.fillStyle = colour;
    pen.lineWidth = 1.5;
    pen.setLineDash(DASHES[place % DASHES.length]);
    pen.beginPath();
    pen.moveTo(x(0), foot);
    let last = foot;
    let drawn = -Infinity;
    for (const [at, value] of points) {
      const across = x(at);
      // Of many steps in one pixel, one is drawn; the line only rises, so the last one tells all.
      if (across - drawn >= 0.5) {
        if (name !== "seconds") pen.lineTo(across, last);
        pen.lineTo(across, height(value));
        drawn = across;
      }
      last = height(value);
    }
    if (name !== "seconds") pen.lineTo(Math.max(x(points[points.length - 1][0]), wide), last);
    pen.stroke();
    pen.setLineDash([]);
    const label = `${name} ${Math.round(limit > 0 ? (100 * used) / limit : 100)} %`;
    const length = pen.measureText(label).width;
    if (right + length < wide) {
      pen.setLineDash(DASHES[place % DASHES.length]);
      pen.beginPath();
      pen.moveTo(right, top + 7);
      pen.lineTo(right + 18, top + 7);
      pen.stroke();
      pen.setLineDash([]);
      pen.fillText(label, right + 22, top + 7.5);
    }
    right += length + 36;
  });
}
