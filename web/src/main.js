import { mount } from "svelte";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import App from "./App.svelte";
import { startTheme } from "./lib/theme.svelte.js";

startTheme();
mount(App, { target: document.getElementById("app") });
