"use strict";
// What a reader does with the page: hide curves, zoom, ask a point, see the numbers, choose light or dark.
(() => {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const theme = document.getElementById("theme");
  const tip = document.getElementById("tip");
  const pictures = JSON.parse(document.getElementById("pictures").textContent);

  const dress = (name) => {
    root.dataset.theme = name;
    theme.setAttribute("aria-pressed", String(name === "dark"));
  };
  dress(dark.matches ? "dark" : "light");
  dark.addEventListener("change", (event) => dress(event.matches ? "dark" : "light"));
  theme.addEventListener("click", () => dress(root.dataset.theme === "dark" ? "light" : "dark"));

  const told = (value) => {
    if (typeof value !== "number") return String(value);
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(3).replace("-", "−");
    return value.toLocaleString("en", { maximumSignificantDigits: 5 }).replace("-", "−");
  };
  const made = (name, text) => {
    const element = document.createElement(name);
    element.textContent = text; // never markup, whatever the text is
    return element;
  };

  const show = (picture, event, row) => {
    if (!row || row.k === undefined || row.y === undefined) {
      tip.hidden = true;
      return;
    }
    const lines = [made("b", picture.names[row.k])];
    lines.push(made("span", `${picture.x || "x"}: ${told(row.x)}`), made("span", `${picture.y || "y"}: ${told(row.y)}`));
    if (row.low != null && row.high != null) lines.push(made("span", `band: ${told(row.low)} to ${told(row.high)}`));
    tip.replaceChildren(...lines);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = event.clientX + 14 + box.width > innerWidth ? event.clientX - 14 - box.width : event.clientX + 14;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 4))}px`;
  };

  // Twice: labels of another width leave another room for the chart.
  const settle = async (view) => {
    await view.runAsync();
    await view.resize().runAsync();
  };

  const zoom = (view, picture, factor) => {
    for (const axis of picture.zoom) {
      let domain = null;
      if (factor) {
        const log = picture.log.includes(axis);
        const [a, b] = view.scale(axis).domain().map((v) => (log ? Math.log(v) : v));
        const middle = (a + b) / 2, half = ((b - a) / 2) * factor;
        domain = [middle - half, middle + half].map((v) => (log ? Math.exp(v) : v));
      }
      view.signal(`grid_${axis}`, domain);
    }
    return settle(view);
  };

  const fill = (figure, picture) => {
    const body = figure.querySelector("tbody");
    if (body.rows.length) return;
    for (const row of picture.rows) {
      const line = body.insertRow();
      line.append(made("th", picture.names[row[0]]));
      line.firstChild.scope = "row";
      for (const value of row.slice(1)) {
        const cell = made("td", value == null ? "" : told(value));
        if (typeof value !== "string") cell.className = "number";
        line.append(cell);
      }
    }
  };

  const draw = async (figure, picture) => {
    const box = figure.querySelector(".chart"); // its role is its own: vega-embed gives one to what is inside
    const tooltip = (_, event, item, row) => show(picture, event, row);
    // ast: expressions are interpreted, not compiled, so that the page needs no right to make code from text
    const options = { mode: "vega", renderer: "svg", actions: false, defaultStyle: false, ast: true, logLevel: 1, tooltip };
    const { view } = await vegaEmbed(box.firstChild, picture.spec, options);
    const shown = picture.names.map(() => true);
    for (const button of figure.querySelectorAll("[data-curve]")) {
      button.addEventListener("click", () => {
        const k = Number(button.dataset.curve);
        shown[k] = !shown[k];
        button.setAttribute("aria-pressed", String(shown[k]));
        figure.querySelector(`[data-paper="${k}"]`).toggleAttribute("data-off", !shown[k]);
        settle(view.signal("shown", [...shown]));
      });
    }
    for (const button of figure.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => zoom(view, picture, Number(button.dataset.zoom)));
    }
    figure.querySelector("details").addEventListener("toggle", () => fill(figure, picture));
    box.addEventListener("pointerleave", () => { tip.hidden = true; });
    box.dataset.drawn = "yes";
  };

  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
  const all = pictures.map((picture, i) => draw(document.getElementById(`picture-${i + 1}`), picture));
  Promise.all(all).then(() => { root.dataset.ready = "yes"; });
})();
