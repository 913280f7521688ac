import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.cloudsimplus.brokers.DatacenterBrokerSimple;
import org.cloudsimplus.cloudlets.Cloudlet;
import org.cloudsimplus.cloudlets.CloudletSimple;
import org.cloudsimplus.core.CloudSimPlus;
import org.cloudsimplus.datacenters.DatacenterSimple;
import org.cloudsimplus.hosts.Host;
import org.cloudsimplus.hosts.HostSimple;
import org.cloudsimplus.resources.Pe;
import org.cloudsimplus.resources.PeSimple;
import org.cloudsimplus.schedulers.cloudlet.CloudletSchedulerTimeShared;
import org.cloudsimplus.utilizationmodels.UtilizationModelDynamic;
import org.cloudsimplus.utilizationmodels.UtilizationModelFull;
import org.cloudsimplus.vms.Vm;
import org.cloudsimplus.vms.VmSimple;
import org.slf4j.LoggerFactory;

/**
 * Poisson arrivals of exponential work on machines that share their time, in turn, by CloudSim Plus:
 * arguments are machines, load, requests and seed. A unit of its time is a millisecond and work is a
 * thousand of them on the mean: short work never ends under its least time between two events.
 */
public class CloudSimPlusQueue {
    public static void main(String[] words) {
        ((Logger) LoggerFactory.getLogger(org.slf4j.Logger.ROOT_LOGGER_NAME)).setLevel(Level.OFF);
        int machines = Integer.parseInt(words[0]);
        double load = Double.parseDouble(words[1]);
        int requests = Integer.parseInt(words[2]);
        Random chance = new Random(Long.parseLong(words[3]));
        long began = cpu();
        CloudSimPlus simulation = new CloudSimPlus(0.1);
        List<Host> hosts = new ArrayList<>();
        for (int number = 0; number < machines; number++) {
            hosts.add(new HostSimple(200_000, 1_000_000, 1_000_000, List.<Pe>of(new PeSimple(1000))));
        }
        new DatacenterSimple(simulation, hosts);
        DatacenterBrokerSimple broker = new DatacenterBrokerSimple(simulation);
        List<Vm> guests = new ArrayList<>();
        for (int number = 0; number < machines; number++) {
            Vm guest = new VmSimple(1000, 1);
            guest.setRam(512).setBw(1000).setSize(10_000);
            guest.setCloudletScheduler(new CloudletSchedulerTimeShared());
            guests.add(guest);
        }
        broker.submitVmList(guests);
        // Memory and bandwidth must not hold anything up: only processors are shared.
        UtilizationModelDynamic little = new UtilizationModelDynamic(1e-6);
        List<Cloudlet> all = new ArrayList<>();
        double at = 1;
        for (int number = 0; number < requests; number++) {
            at += -1000 * Math.log(1 - chance.nextDouble()) / (load * machines);
            long work = Math.max(1000, Math.round(-1e6 * Math.log(1 - chance.nextDouble())));
            Cloudlet one = new CloudletSimple(work, 1);
            one.setUtilizationModelCpu(new UtilizationModelFull());
            one.setUtilizationModelRam(little).setUtilizationModelBw(little);
            one.setSubmissionDelay(at);
            one.setVm(guests.get(number % machines));
            all.add(one);
        }
        broker.submitCloudletList(all);
        simulation.start();
        double sum = 0;
        List<Cloudlet> done = broker.getCloudletFinishedList();
        for (Cloudlet one : done) {
            sum += one.getFinishTime() - one.getDcArrivalTime();
        }
        double spent = (cpu() - began) / 1e9;
        System.out.printf(
                "{\"requests\": %d, \"mean\": %.6f, \"cpu_s\": %.4f}%n",
                done.size(), sum / done.size() / 1000, spent);
    }

    private static long cpu() {
        var system = (com.sun.management.OperatingSystemMXBean)
                java.lang.management.ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime();
    }
}
